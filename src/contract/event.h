// One line of an attempt's account ("cofferdam.event/1").
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"

namespace cofferdam::contract {

// The event types, in the order of the path. `data` of each is described in contracts/event.schema.json.
namespace event_type {
inline constexpr const char* queued = "queued";  // waiting for capacity, with the position
inline constexpr const char* admitted = "admitted";
inline constexpr const char* cloned = "cloned";
inline constexpr const char* workspace_ready = "workspace-ready";
inline constexpr const char* box_ready = "box-ready";
inline constexpr const char* gateway_ready = "gateway-ready";
inline constexpr const char* started = "started";
inline constexpr const char* agent = "agent";    // one decoded event of the agent's own stream
inline constexpr const char* egress = "egress";  // one request, allowed or denied
inline constexpr const char* source = "source";  // what lies in the user's repository beside the head
inline constexpr const char* checkpointed = "checkpointed";  // a commit of what the agent has made so far
inline constexpr const char* cancel_requested = "cancel-requested";
inline constexpr const char* answered = "answered";            // the agent's final answer has been read
inline constexpr const char* process_ended = "process-ended";  // with the status as the kernel gave it
inline constexpr const char* box_gone = "box-gone";    // every box of the attempt, by the kernel's word
inline constexpr const char* settled = "settled";      // the cause and the agent's account are closed
inline constexpr const char* recovered = "recovered";  // by whom an attempt without supervisor was taken over
inline constexpr const char* snapshot = "snapshot";
inline constexpr const char* committed = "committed";  // the change is a commit in the attempt's own store
inline constexpr const char* publishing =
    "publishing";  // the context is claimed, the ref is about to be made
inline constexpr const char* published = "published";
inline constexpr const char* not_published = "not-published";  // the claim is given back: stale, or it failed
inline constexpr const char* finished = "finished";
}  // namespace event_type

struct Event {
  std::string attempt_id;
  std::uint64_t seq = 0;  // 1, 2, 3, ... without a gap
  Timestamp at;
  std::string type;
  std::string data = "{}";  // a JSON object, canonical
};

std::string encode_event(const Event& event);  // one line, no newline
Result<Event> decode_event(std::string_view json);

}  // namespace cofferdam::contract
