#include <array>
#include <cstdint>

#include "base/text.h"
#include "contract/config.h"

namespace cofferdam::contract {
namespace {

struct Unit {
  std::string_view name;
  std::int64_t ms;
};
// Each may occur once, in this order.
constexpr std::array<Unit, 4> kUnits{{{"h", 3'600'000}, {"m", 60'000}, {"s", 1000}, {"ms", 1}}};
constexpr std::int64_t kMaxMs = 366LL * 24 * 3'600'000;

Error bad_duration(std::string_view text) {
  return make_error(Code::usage, "not a duration: \"" + printable(text, 64) + "\"",
                    "write it as 30m, 90s, 1h30m or 250ms");
}

}  // namespace

Result<std::chrono::milliseconds> parse_duration(std::string_view text) {
  const std::string_view whole = text;
  std::int64_t total = 0;
  std::size_t next_unit = 0;
  while (!text.empty()) {
    std::size_t digits = text.find_first_not_of("0123456789");
    if (digits == 0 || digits == std::string_view::npos || digits > 12) return bad_duration(whole);
    std::int64_t number = 0;
    for (char digit : text.substr(0, digits)) number = number * 10 + (digit - '0');
    text.remove_prefix(digits);
    std::size_t letters = text.find_first_of("0123456789");
    std::string_view unit = text.substr(0, letters);
    while (next_unit < kUnits.size() && kUnits.at(next_unit).name != unit) ++next_unit;
    if (next_unit == kUnits.size()) return bad_duration(whole);
    total += number * kUnits.at(next_unit).ms;
    if (number > kMaxMs || total > kMaxMs) return bad_duration(whole);
    ++next_unit;
    text.remove_prefix(unit.size());
  }
  if (whole.empty()) return bad_duration(whole);
  return std::chrono::milliseconds(total);
}

}  // namespace cofferdam::contract
