// Reading hostile JSON objects, and the bounded data of events. Private to src/agent.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "agent/decoder.h"
#include "contract/json.h"

namespace cofferdam::agent {

inline constexpr std::size_t kMaxTextBytes = 32U << 10U;
inline constexpr std::size_t kMaxNameBytes = 256;

// Members of hostile objects: the value, or nothing of that type.
std::string text_member(const contract::Json& object, const char* key);
std::uint64_t count_member(const contract::Json& object, const char* key);
const contract::Json& member(const contract::Json& object, const char* key);  // null when absent

AgentEvent make_event(const char* kind, const contract::Json& data);
AgentEvent warning(const std::string& what);

// Which steps of the list that an agent keeps for itself are done: each is told once.
class StepList {
 public:
  // `items`: a list of objects; null of what is none.
  std::vector<AgentEvent> read(const contract::Json& items, const char* text_key,
                               bool (*done)(const contract::Json& item));

 private:
  std::set<std::string> told_;
};

// Sets data[key], and says so when the text did not fit.
void put_text(contract::Json* data, const char* key, const std::string& text);
void put_name(contract::Json* data, const char* key, const contract::Json& from, const char* from_key);
// A tool's input as it is when it is small, otherwise the beginning of its encoding.
void put_input(contract::Json* data, const contract::Json& input);

}  // namespace cofferdam::agent
