#include "agent/event_data.h"

namespace cofferdam::agent {

using contract::canonical;
using contract::Json;
using contract::json_text;

const Json& member(const Json& object, const char* key) {
  static const Json kNull;
  if (!object.is_object()) return kNull;
  auto found = object.find(key);
  return found == object.end() ? kNull : *found;
}

std::string text_member(const Json& object, const char* key) {
  const Json& value = member(object, key);
  return value.is_string() ? value.get<std::string>() : std::string();
}

std::uint64_t count_member(const Json& object, const char* key) {
  const Json& value = member(object, key);
  return value.is_number_unsigned() ? value.get<std::uint64_t>() : 0;
}

AgentEvent make_event(const char* kind, const Json& data) {
  AgentEvent event;
  event.kind = kind;
  event.data = canonical(data);
  return event;
}

AgentEvent warning(const std::string& what) {
  Json data = Json::object();
  put_text(&data, "text", what);
  return make_event("warning", data);
}

void put_text(Json* data, const char* key, const std::string& text) {
  (*data)[key] = json_text(text, kMaxTextBytes);
  if (text.size() > kMaxTextBytes) (*data)["truncated"] = true;
}

void put_name(Json* data, const char* key, const Json& from, const char* from_key) {
  (*data)[key] = json_text(text_member(from, from_key), kMaxNameBytes);
}

void put_input(Json* data, const Json& input) {
  const std::string encoded = canonical(input);
  if (encoded.size() <= kMaxTextBytes) {
    (*data)["input"] = input;
  } else {
    put_text(data, "input_text", encoded);
  }
}

std::vector<AgentEvent> StepList::read(const Json& items, const char* text_key, bool (*done)(const Json&)) {
  constexpr std::size_t kMaxItems = 200;
  constexpr std::size_t kMaxTold = 1000;
  std::vector<AgentEvent> events;
  if (!items.is_array()) return events;
  for (std::size_t i = 0; i < items.size() && i < kMaxItems; ++i) {
    const std::string text = json_text(text_member(items[i], text_key), kMaxNameBytes);
    if (text.empty() || !done(items[i]) || told_.size() >= kMaxTold || !told_.insert(text).second) continue;
    events.push_back(make_event("step", {{"text", text}}));
  }
  return events;
}

}  // namespace cofferdam::agent
