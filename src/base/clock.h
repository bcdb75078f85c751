// Wall-clock times in the account of a run. Durations and deadlines use std::chrono::steady_clock instead.
#pragma once

#include <cstdint>
#include <string>

namespace cofferdam {

struct Timestamp {
  std::int64_t ms = 0;  // milliseconds since 1970-01-01T00:00:00Z
  auto operator<=>(const Timestamp&) const = default;
};

Timestamp now();
std::string to_rfc3339(Timestamp time);                      // "2026-11-30T08:15:00.123Z" (RFC 3339)
bool from_rfc3339(const std::string& text, Timestamp* out);  // exactly that form

}  // namespace cofferdam
