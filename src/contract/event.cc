#include "contract/event.h"

#include <fmt/core.h>

#include "contract/json.h"
#include "contract/rules.h"

namespace cofferdam::contract {
namespace {

constexpr const char* kSchema = "cofferdam.event/1";
constexpr std::size_t kMaxEventBytes = 8U << 20U;

const std::vector<std::string>& event_types() {
  static const std::vector<std::string> kTypes{
      event_type::queued,          event_type::admitted,      event_type::cloned,
      event_type::workspace_ready, event_type::box_ready,     event_type::gateway_ready,
      event_type::started,         event_type::agent,         event_type::egress,
      event_type::source,          event_type::checkpointed,  event_type::cancel_requested,
      event_type::answered,        event_type::process_ended, event_type::box_gone,
      event_type::settled,         event_type::recovered,     event_type::snapshot,
      event_type::committed,       event_type::publishing,    event_type::published,
      event_type::not_published,   event_type::finished};
  return kTypes;
}

// What decode_event() would refuse is kept as text, so that a line is never lost and never unreadable.
Json data_json(const std::string& data) {
  auto parsed = parse_json(data, kMaxEventBytes / 2, kMaxJsonDepth - 1);
  if (parsed && parsed->is_object()) return *std::move(parsed);
  return {{"unreadable", json_text(data, 65'536)}};
}

}  // namespace

std::string encode_event(const Event& event) {
  const Json document = {
      {"schema", kSchema},
      {"attempt_id", json_text(event.attempt_id, 64)},
      {"seq", json_count(event.seq)},
      {"at", to_rfc3339(event.at)},
      {"type", json_text(event.type, 64)},
      {"data", data_json(event.data)},
  };
  return canonical(document);
}

Result<Event> decode_event(std::string_view json) {
  TRY(Json document, parse_json(json, kMaxEventBytes));
  JsonFault fault;
  ObjectReader in(document, "$", &fault);
  Event out;
  in.constant("schema", kSchema);
  out.attempt_id = in.text("attempt_id", {1, 64});
  if (!is_attempt_id(out.attempt_id)) in.fail("attempt_id", "is not an attempt id");
  out.seq = in.integer("seq", 1, kMaxJsonInteger);
  out.at = in.timestamp("at");
  out.type = event_types()[in.choice("type", event_types())];
  const Json& data = in.raw("data");
  if (!data.is_object()) in.fail("data", "must be an object");
  out.data = canonical(data);
  in.finish();
  if (fault.failed()) return fault.error();
  return out;
}

}  // namespace cofferdam::contract
