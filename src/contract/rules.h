// The bounds and shapes that the invocation and the configuration share.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "contract/invocation.h"

namespace cofferdam::contract {

inline constexpr std::uint64_t kMaxTotalMs = 7ULL * 24 * 60 * 60 * 1000;
inline constexpr std::uint64_t kMaxGraceMs = 60'000;
inline constexpr std::size_t kMaxPathBytes = 4096;
inline constexpr std::size_t kMaxModelBytes = 128;

struct LimitRule {
  const char* key;
  std::uint64_t Limits::*field;
  std::uint64_t min;
  std::uint64_t max;
};
// Lower bounds: less could not hold even an empty work tree or one line of output.
inline constexpr std::array<LimitRule, 15> kLimitRules{{
    {"work_bytes", &Limits::work_bytes, 65'536, 1ULL << 40U},
    {"work_inodes", &Limits::work_inodes, 16, 100'000'000},
    {"scratch_bytes", &Limits::scratch_bytes, 65'536, 1ULL << 40U},
    {"scratch_inodes", &Limits::scratch_inodes, 16, 100'000'000},
    {"stdout_bytes", &Limits::stdout_bytes, 1, 1ULL << 40U},
    {"stderr_bytes", &Limits::stderr_bytes, 1, 1ULL << 40U},
    {"line_bytes", &Limits::line_bytes, 1024, 1ULL << 30U},
    {"events", &Limits::events, 1, 10'000'000},
    {"memory_bytes", &Limits::memory_bytes, 1ULL << 20U, 1ULL << 44U},
    {"pids", &Limits::pids, 8, 4'000'000},
    {"requests", &Limits::requests, 1, 1'000'000},
    {"max_tokens", &Limits::max_tokens, 1, 10'000'000},
    {"tokens", &Limits::tokens, 0, 1ULL << 40U},
    {"cost_usd_micros", &Limits::cost_usd_micros, 0, 1'000'000'000'000},
    {"parallel_requests", &Limits::parallel_requests, 1, 4096},
}};

bool is_attempt_id(std::string_view text);
bool is_model(std::string_view text);         // 1..128 of [A-Za-z0-9._:/\[\]-]
bool is_version(std::string_view text);       // 1..64 of [A-Za-z0-9._+-]
bool is_context_name(std::string_view text);  // 1..128 of [A-Za-z0-9._/-]
bool is_sha256(std::string_view text);        // 64 lower-case hexadecimal digits
bool has_control(std::string_view text);      // any of U+0000..U+001F and U+007F
bool only_of(std::string_view text, std::string_view allowed);

}  // namespace cofferdam::contract
