#include "egress/first_line.h"

#include <array>

#include "base/io.h"

namespace cofferdam::egress {
namespace {

using contract::Json;
using Clock = std::chrono::steady_clock;

constexpr std::size_t kMaxFirstLine = 8192;
constexpr auto kEndLimit = std::chrono::seconds(10);
constexpr std::array kCodes = {Code::usage,   Code::config,   Code::missing_tool, Code::unsupported_host,
                               Code::denied,  Code::conflict, Code::not_found,    Code::exhausted,
                               Code::timeout, Code::io,       Code::protocol,     Code::internal};

// Byte by byte: what follows the line belongs to whoever reads on. Empty at the end of the stream.
Result<std::string> read_line(const std::string& what, int fd, std::chrono::milliseconds limit) {
  const auto end = Clock::now() + limit;
  std::string line;
  while (line.size() < kMaxFirstLine) {
    auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now()).count();
    TRY(bool readable, wait_readable(fd, left > 0 ? static_cast<int>(left) : 0));
    if (!readable) return make_error(Code::timeout, what + " did not start in time");
    bool would_block = false;
    TRY(std::string byte, read_some(fd, 1, &would_block));
    if (would_block) continue;
    if (byte.empty()) return std::string();
    if (byte.front() == '\n') return line;
    line.push_back(byte.front());
  }
  return make_error(Code::protocol, "the first line of " + what + " is too long");
}

Error decode_start_error(const Json& json, const std::string& what) {
  contract::JsonFault fault;
  contract::ObjectReader in(json, "$", &fault);
  Error error;
  error.what = in.text("error", {1, kMaxFirstLine});
  error.hint = in.text("hint", {0, kMaxFirstLine});
  std::vector<std::string> names;
  names.reserve(kCodes.size());
  for (Code code : kCodes) names.emplace_back(code_name(code));
  error.code = kCodes.at(in.choice("code", names));
  in.finish();
  return fault.failed() ? fault.error().with("the first line of " + what) : error;
}

}  // namespace

std::string encode_start_error(const Error& error) {
  return contract::canonical(Json{{"error", contract::json_text(error.what, 2048)},
                                  {"hint", contract::json_text(error.hint, 1024)},
                                  {"code", code_name(error.code)}}) +
         "\n";
}

Result<Json> read_first_line(const std::string& what, int fd, Child* child, std::chrono::milliseconds limit) {
  TRY(std::string line, read_line(what, fd, limit));
  if (line.empty()) {
    TRY(ExitStatus status, child->wait(kEndLimit));
    return make_error(Code::internal, what + " ended while starting: " + status.describe());
  }
  auto json = contract::parse_json(line, kMaxFirstLine);
  if (!json) return std::move(json).error().with("the first line of " + what);
  if (json->is_object() && json->contains("error")) return decode_start_error(*json, what);
  return json;
}

}  // namespace cofferdam::egress
