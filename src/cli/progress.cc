#include "cli/progress.h"

#include <fmt/core.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>

#include "base/io.h"
#include "cli/event_facts.h"
#include "cli/source_notes.h"
#include "cli/table.h"

namespace cofferdam::cli {
namespace {

using contract::Json;

constexpr std::size_t kMaxLine = 240;

EventText describe_agent(const Json& event) {
  const std::string kind = text_of(member(event, "kind"));
  const Json& data = agent_data(event);
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
  Json data = event_data(event);
  data.erase("result_sha256");  // for `verify`
  EventText out;
  if (event.type == contract::event_type::agent) {
    out = describe_agent(data);
  } else if (event.type == contract::event_type::egress) {
    out = describe_egress(data);
  } else {
    if (event.type == contract::event_type::cloned && member(data, "base") == member(data, "head")) {
      data.erase("base");
    }
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
  if (event.type == contract::event_type::source) {
    for (const std::string& note : source_notes(event_data(event), dirty_taken_)) this->note(note);
    return;
  }
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
  if (event.type != contract::event_type::cloned) return;
  const auto taken = base_note(event_data(event));
  dirty_taken_ = taken.has_value();
  if (taken.has_value()) note(*taken);
}

void Progress::note(const std::string& text) {
  clear();
  print(fmt::format("{:10}{}\n", "", text));
}

bool is_rewritable_terminal(int fd) {
  const char* term = std::getenv("TERM");  // NOLINT(concurrency-mt-unsafe): no thread of ours sets it
  return ::isatty(fd) == 1 && term != nullptr && std::string_view(term) != "dumb";
}

}  // namespace cofferdam::cli
