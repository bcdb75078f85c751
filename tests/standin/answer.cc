#include "answer.h"

#include <algorithm>

#include "base/text.h"

namespace cofferdam::standin {
namespace {

constexpr std::size_t kDeltaBytes = 24;

}  // namespace

std::string dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::uint64_t estimate_tokens(std::uint64_t bytes) {
  return bytes / 4 + 1;
}

Usage usage_of(const Turn& turn, const Request& request) {
  std::uint64_t bytes = turn.flood_bytes;
  for (const Block& block : turn.blocks) bytes += block.text.size() + block.input.size();
  return turn.usage.value_or(Usage{estimate_tokens(request.body.size()), estimate_tokens(bytes)});
}

void expect_texts(const std::string& where, const std::string& text, const std::vector<std::string>& wanted,
                  Json* mismatches) {
  for (const std::string& one : wanted) {
    if (text.find(one) != std::string::npos) continue;
    std::string mismatch = where;
    mismatch.append(" does not contain \"").append(one).append("\"");
    mismatches->push_back(std::move(mismatch));
  }
}

void expect_tools(const Expect& expect, std::vector<std::string> names, Json* mismatches) {
  if (!expect.tools) return;
  std::vector<std::string> wanted = *expect.tools;
  std::sort(names.begin(), names.end());
  std::sort(wanted.begin(), wanted.end());
  if (names != wanted) mismatches->push_back("the tools are " + join(names, " "));
}

void expect_headers(const Expect& expect, const Request& request, Json* mismatches) {
  for (const auto& [name, value] : expect.headers) {
    auto found = request.headers.find(name);
    if (!value && found != request.headers.end()) mismatches->push_back("header " + name + " is there");
    if (value && (found == request.headers.end() || found->second != *value)) {
      mismatches->push_back("header " + name + " is not \"" + *value + "\"");
    }
  }
}

std::vector<std::string> delta_pieces(const std::string& text) {
  std::vector<std::string> pieces;
  for (std::size_t at = 0; at < text.size() || at == 0;) {
    std::size_t size = std::min(kDeltaBytes, text.size() - at);
    while (at + size < text.size() && (static_cast<unsigned char>(text[at + size]) & 0xC0U) == 0x80U) ++size;
    pieces.push_back(text.substr(at, size));
    at += std::max<std::size_t>(size, 1);
  }
  return pieces;
}

bool misfortune_strikes(Exchange& exchange, const Turn& turn) {
  if (turn.stall == Point::mid_stream) {
    exchange.hold();
    return true;
  }
  if (turn.reset == Point::mid_stream) {
    exchange.reset();
    return true;
  }
  return turn.error.has_value() || turn.garbage == Point::mid_stream || turn.truncate;
}

}  // namespace cofferdam::standin
