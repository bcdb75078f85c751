#include "cli/progress.h"

#include <fmt/core.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>

#include "base/io.h"
#include "base/text.h"
#include "cli/table.h"
#include "contract/json.h"

namespace cofferdam::cli {
namespace {

using contract::Json;

constexpr std::size_t kMaxLine = 240;
constexpr std::size_t kMaxValue = 160;
constexpr std::size_t kShortId = 12;  // object ids and SHA-256s: enough to recognise, not to use
constexpr std::size_t kMaxDataBytes = 8U << 20U;

const Json& member(const Json& object, const char* key) {
  static const Json kNull;
  if (!object.is_object()) return kNull;
  const auto found = object.find(key);
  return found == object.end() ? kNull : *found;
}

std::string text_of(const Json& value) {
  if (value.is_string()) return one_line(trim(value.get_ref<const std::string&>()), kMaxLine);
  return value.is_null() || value.is_structured() ? "" : contract::canonical(value);
}

// "key value, key value" of the members that have one short value each; nested ones are for --json and show.
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

// "Edit src/a.c": the tool and the one argument that tells a reader most.
std::string tool_call(const Json& data) {
  const Json& input = member(data, "input");
  for (const char* key : {"command", "file_path", "path", "pattern", "description"}) {
    const std::string shown = text_of(member(input, key));
    if (!shown.empty()) return text_of(member(data, "name")) + " " + shown;
  }
  return text_of(member(data, "name"));
}

EventText describe_agent(const Json& event) {
  const std::string kind = text_of(member(event, "kind"));
  const Json& nested = member(event, "data");
  const Json& data = nested.is_object() ? nested : event;
  if (kind == "message") return {Weight::passing, "agent: " + text_of(member(data, "text"))};
  if (kind == "tool-call") return {Weight::passing, "agent: " + tool_call(data)};
  if (kind == "retry" || kind == "warning" || kind == "error") {
    const std::string text = text_of(member(data, "text"));
    return {Weight::line, "agent " + kind + ": " + (text.empty() ? scalars(data) : text)};
  }
  return {};
}

EventText describe_egress(const Json& data) {
  if (member(data, "denied") != Json(true)) return {};
  return {Weight::line, "denied: " + text_of(member(data, "method")) + " " + text_of(member(data, "path")) +
                            " (" + text_of(member(data, "rule")) + ")"};
}

int columns(int fd) {
  struct winsize size {};
  return ::ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

// At most `width` characters.
std::string cut(const std::string& utf8, std::size_t width) {
  std::size_t end = 0;
  for (std::size_t shown = 0; end < utf8.size(); ++end) {
    const bool starts = (static_cast<unsigned char>(utf8[end]) & 0xC0U) != 0x80U;
    if (starts && ++shown > width) break;
  }
  return utf8.substr(0, end);
}

}  // namespace

EventText describe_event(const contract::Event& event) {
  auto parsed = contract::parse_json(event.data, kMaxDataBytes);
  const Json data = parsed && parsed->is_object() ? *std::move(parsed) : Json::object();
  EventText out;
  if (event.type == contract::event_type::agent) {
    out = describe_agent(data);
  } else if (event.type == contract::event_type::egress) {
    out = describe_egress(data);
  } else {
    const std::string details = scalars(data);
    out = {Weight::line, details.empty() ? event.type : event.type + ": " + details};
  }
  out.text = one_line(out.text, kMaxLine);
  return out;
}

// Progress is a courtesy: whoever closed standard error does not want it, and the attempt goes on.
void Progress::print(const std::string& text) const {
  (void)write_all(fd_, text).has_value();
}

void Progress::clear() {
  if (!status_shown_) return;
  print("\r\033[K");  // carriage return, erase to the end of the line: ECMA-48 EL
  status_shown_ = false;
}

void Progress::show(const contract::Event& event) {
  if (first_ == Timestamp{}) first_ = event.at;
  const EventText described = describe_event(event);
  if (described.weight == Weight::skip) return;
  const double seconds = static_cast<double>(event.at.ms - first_.ms) / 1000.0;
  const std::string line = fmt::format("{:7.1f}s  {}", seconds, described.text);
  clear();
  if (terminal_ && described.weight == Weight::passing) {
    print(cut(line, static_cast<std::size_t>(columns(fd_)) - 1));
    status_shown_ = true;
  } else {
    print(line + "\n");
  }
}

bool is_rewritable_terminal(int fd) {
  const char* term = std::getenv("TERM");  // NOLINT(concurrency-mt-unsafe): no thread of ours sets it
  return ::isatty(fd) == 1 && term != nullptr && std::string_view(term) != "dumb";
}

}  // namespace cofferdam::cli
