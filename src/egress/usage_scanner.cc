#include "egress/usage_scanner.h"

#include <algorithm>

#include "base/text.h"
#include "contract/json.h"

namespace cofferdam::egress {
namespace {

using contract::Json;

// The last event of OpenAI repeats the whole answer, and what was asked.
constexpr std::size_t kMaxLine = 4U << 20U;
constexpr std::size_t kMaxAnswer = 4U << 20U;
// What was asked is repeated in what is answered, and it may be nested as deep as a body may (body_policy.h).
constexpr std::size_t kMaxDepth = 128;
// No answer has more; what is larger is nonsense and would only overflow sums.
constexpr std::uint64_t kMaxTokens = 1ULL << 40U;

std::uint64_t count_of(const Json& usage, const char* key) {
  auto found = usage.find(key);
  if (found == usage.end() || !found->is_number_unsigned()) return 0;
  auto value = found->get<std::uint64_t>();
  return value > kMaxTokens ? 0 : value;
}

// Events that have the counts one level down.
struct Holder {
  const char* event;
  const char* key;
  bool final;
};
constexpr Holder kHolders[] = {{"message_start", "message", false},
                               {"response.completed", "response", true},
                               {"response.incomplete", "response", true},
                               {"response.failed", "response", true}};

// The counts are cumulative and not every event has all of them: a missing one keeps what was known. False:
// there are none.
bool take(const Json& holder, TokenUsage* into) {
  auto usage = holder.find("usage");
  if (usage == holder.end() || !usage->is_object()) return false;
  const std::uint64_t written = count_of(*usage, "cache_creation_input_tokens");
  const std::uint64_t read = count_of(*usage, "cache_read_input_tokens");
  const auto raise = [](std::uint64_t* known, std::uint64_t count) { *known = std::max(*known, count); };
  raise(&into->input, count_of(*usage, "input_tokens") + written + read);
  raise(&into->output, count_of(*usage, "output_tokens"));
  raise(&into->cache_read, read);
  raise(&into->cache_write, written);
  auto kinds = usage->find("cache_creation");
  if (kinds == usage->end() || !kinds->is_object()) return true;
  raise(&into->cache_write_1h, count_of(*kinds, "ephemeral_1h_input_tokens"));
  return true;
}

}  // namespace

UsageScanner::Form UsageScanner::form_of(std::string_view content_type) {
  if (starts_with(content_type, "text/event-stream")) return Form::event_stream;
  if (starts_with(content_type, "application/json")) return Form::json;
  return Form::none;
}

void UsageScanner::feed(std::string_view bytes) {
  if (form_ == Form::event_stream) feed_lines(bytes);
  if (form_ != Form::json || overlong_) return;
  overlong_ = pending_.size() + bytes.size() > kMaxAnswer;
  if (overlong_) {
    pending_ = std::string();
  } else {
    pending_.append(bytes);
  }
}

void UsageScanner::feed_lines(std::string_view bytes) {
  // Each of the two is looked for again only once it lies behind: every byte is passed twice at the speed of
  // memchr(3), where find_first_of() calls it for every byte.
  std::size_t carriage_return = bytes.find('\r');
  std::size_t line_feed = bytes.find('\n');
  std::size_t at = 0;
  while (at < bytes.size()) {
    const std::size_t end = std::min(carriage_return, line_feed);
    std::string_view part = bytes.substr(at, end == std::string_view::npos ? end : end - at);
    overlong_ = overlong_ || pending_.size() + part.size() > kMaxLine;
    if (!overlong_) pending_.append(part);
    if (end == std::string_view::npos) return;
    end_line();
    at = end + 1;
    if (carriage_return == end) {
      carriage_return = bytes.find('\r', at);
    } else {
      line_feed = bytes.find('\n', at);
    }
  }
}

void UsageScanner::end_line() {
  std::string_view line = pending_;
  // Most lines are content; only a few events have counts.
  bool counts = !overlong_ && starts_with(line, "data:") && line.find("\"usage\"") != std::string_view::npos;
  if (counts) {
    auto event = contract::parse_json_lenient(trim(line.substr(5)), kMaxLine, kMaxDepth);
    if (event && event->is_object()) {
      const Json type = event->value("type", Json());
      if (type == "message_delta" && take(*event, &usage_)) final_ = true;
      for (const Holder& holder : kHolders) {
        if (type != holder.event) continue;
        auto inner = event->find(holder.key);
        if (inner == event->end() || !inner->is_object()) continue;
        if (take(*inner, &usage_) && holder.final) final_ = true;
      }
    }
  }
  pending_.clear();
  overlong_ = false;
}

void UsageScanner::finish() {
  if (form_ != Form::json || overlong_) return;
  auto answer = contract::parse_json_lenient(pending_, kMaxAnswer, kMaxDepth);
  if (answer && answer->is_object()) final_ = take(*answer, &usage_);
}

}  // namespace cofferdam::egress
