// What the client asks the upstream for. It travels inside the text of an ordinary request body, so that
// every proxy between them relays, and the gateway judges, a body like those of a real agent.
#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>

namespace cofferdam::bench {

struct Plan {
  std::uint64_t events = 0;       // of one answer, each with the time at which it was written
  std::uint64_t interval_us = 0;  // between them
  std::uint64_t bytes = 0;        // of one answer in bulk, if there are no events
};

inline std::string plan_text(const Plan& plan) {
  return "bench " + std::to_string(plan.events) + " " + std::to_string(plan.interval_us) + " " +
         std::to_string(plan.bytes) + " end";
}

inline std::optional<Plan> find_plan(const std::string& body) {
  const std::size_t at = body.find("bench ");
  unsigned long long events = 0;
  unsigned long long interval = 0;
  unsigned long long bytes = 0;
  if (at == std::string::npos ||
      std::sscanf(body.c_str() + at, "bench %llu %llu %llu end", &events, &interval, &bytes) != 3) {
    return std::nullopt;
  }
  return Plan{events, interval, bytes};
}

// All processes are on one machine, so that they share this clock.
inline std::uint64_t now_ns() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(now).count());
}

// Behind this mark stand the twenty digits of an event's time.
inline constexpr std::string_view kTimeMark = "\"t\":\"";
inline constexpr std::size_t kTimeDigits = 20;

}  // namespace cofferdam::bench
