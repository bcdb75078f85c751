// The few system-call helpers of init. No exceptions, no locks; failures go to the supervisor over the
// control socket and end the process.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace cofferdam::init {

// Sends one message; a lost supervisor ends us elsewhere, so errors are ignored here.
void send_text(char kind, std::string_view text);
void send_with_fd(char kind, std::string_view text, int fd);

// Reports step and errno to the supervisor and exits with 125.
[[noreturn]] void die(const char* step);
[[noreturn]] void die_with(const char* step, int error);

// die(step) unless `condition`.
inline void check(bool condition, const char* step) {
  if (!condition) die(step);
}

bool write_file(const char* path, std::string_view text);
std::string number(std::uint64_t value);
std::string fields(std::string_view a, std::string_view b);
std::string fields(std::string_view a, std::string_view b, std::string_view c);

}  // namespace cofferdam::init
