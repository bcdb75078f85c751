// An interpreter of classic BPF over struct seccomp_data, as the kernel runs it (Documentation/userspace-api/
// seccomp_filter.rst): the filter is judged by what it answers, not by how it was written.
#pragma once

#include <linux/filter.h>
#include <linux/seccomp.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace cofferdam::golden {

// The bytes of a filter as instructions; empty when they are none.
std::vector<sock_filter> instructions_of(const std::string& bytes);

struct Verdict {
  bool valid = false;  // a broken program (a jump or load out of bounds, an unknown instruction) has none
  std::uint32_t action = 0;  // SECCOMP_RET_*
  std::size_t steps = 0;     // instructions that were run
};

Verdict evaluate(const std::vector<sock_filter>& program, const seccomp_data& data);

// "ALLOW", "ERRNO EPERM", "KILL_PROCESS", ...
std::string action_name(const Verdict& verdict);

}  // namespace cofferdam::golden
