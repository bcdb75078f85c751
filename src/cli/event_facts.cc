#include "cli/event_facts.h"

#include "base/text.h"
#include "cli/table.h"

namespace cofferdam::cli {

using contract::Json;

namespace {

constexpr std::size_t kMaxText = 1000;
constexpr std::size_t kMaxValue = 160;
constexpr std::size_t kShortId = 12;  // object ids and SHA-256s: enough to recognise, not to use
constexpr std::size_t kMaxDataBytes = 8U << 20U;

}  // namespace

Json event_data(const contract::Event& event) {
  auto parsed = contract::parse_json(event.data, kMaxDataBytes);
  return parsed && parsed->is_object() ? *std::move(parsed) : Json::object();
}

const Json& member(const Json& object, const char* key) {
  static const Json kNull;
  if (!object.is_object()) return kNull;
  const auto found = object.find(key);
  return found == object.end() ? kNull : *found;
}

std::string text_of(const Json& value) {
  if (value.is_string()) return one_line(trim(value.get_ref<const std::string&>()), kMaxText);
  return value.is_null() || value.is_structured() ? "" : contract::canonical(value);
}

std::string scalars(const Json& data) {
  std::string out;
  for (const auto& [key, value] : data.items()) {
    std::string shown = one_line(text_of(value), kMaxValue);
    if (shown.empty()) continue;
    if (is_object_id(shown)) shown.resize(kShortId);
    if (!out.empty()) out += ", ";
    out += one_line(key, 64) + " " + shown;
  }
  return out;
}

std::string tool_call(const Json& data) {
  const Json& input = member(data, "input");
  for (const char* key : {"command", "file_path", "path", "pattern", "description"}) {
    const std::string shown = text_of(member(input, key));
    if (!shown.empty()) return text_of(member(data, "name")) + " " + shown;
  }
  return text_of(member(data, "name"));
}

const Json& agent_data(const Json& event) {
  const Json& nested = member(event, "data");
  return nested.is_object() ? nested : event;
}

}  // namespace cofferdam::cli
