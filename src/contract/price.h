// What a model's tokens cost: integers, so that sums are exact.
#pragma once

#include <cstdint>

namespace cofferdam::contract {

// US dollars per million tokens, in millionths of a dollar: $2.50 is 2'500'000.
inline constexpr std::uint64_t kMaxPrice = 10'000'000'000;
struct ModelPrice {
  std::uint64_t input = 0;
  std::uint64_t output = 0;
  std::uint64_t cache_read = 0;
  std::uint64_t cache_write = 0;     // kept for five minutes
  std::uint64_t cache_write_1h = 0;  // kept for an hour
  bool operator==(const ModelPrice&) const = default;
};

}  // namespace cofferdam::contract
