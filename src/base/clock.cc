#include "base/clock.h"

#include <fmt/core.h>

#include <chrono>
#include <cstdio>
#include <ctime>

namespace cofferdam {

Timestamp now() {
  using namespace std::chrono;
  return {duration_cast<milliseconds>(system_clock::now().time_since_epoch()).count()};
}

std::string to_rfc3339(Timestamp time) {
  std::int64_t millis = ((time.ms % 1000) + 1000) % 1000;
  std::time_t seconds = (time.ms - millis) / 1000;
  std::tm parts{};
  ::gmtime_r(&seconds, &parts);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z", parts.tm_year + 1900, parts.tm_mon + 1,
                     parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec, millis);
}

bool from_rfc3339(const std::string& text, Timestamp* out) {
  std::tm parts{};
  int millis = 0;
  if (text.size() != 24 || text[0] < '0' || text[0] > '9') return false;  // sscanf would take "-026"
  int fields =
      std::sscanf(text.c_str(), "%4d-%2d-%2dT%2d:%2d:%2d.%3dZ", &parts.tm_year, &parts.tm_mon,  // NOLINT
                  &parts.tm_mday, &parts.tm_hour, &parts.tm_min, &parts.tm_sec, &millis);
  if (fields != 7) return false;
  parts.tm_year -= 1900;
  parts.tm_mon -= 1;
  out->ms = ::timegm(&parts) * 1000 + millis;
  return to_rfc3339(*out) == text;
}

}  // namespace cofferdam
