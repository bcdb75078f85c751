// The system-call filter as a table with a reason per rule, compiled by libseccomp on the host into bytes
// that init only loads. Everything that is not named is allowed: the box's other layers do not rest on the
// filter; it takes kernel surface away.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace cofferdam::sandbox {

struct SyscallRule {
  const char* name;
  int error;  // errno that the caller gets
  const char* reason;
  int number = 0;  // for calls that are newer than libseccomp's names; the same on every 64-bit architecture
};
const std::vector<SyscallRule>& syscall_rules();
// Negative: this architecture has no such call.
int syscall_number(const SyscallRule& rule);

// struct sock_filter[] as bytes; a binary tree, so that loading and checking stay cheap.
Result<std::string> compile_seccomp_filter();

}  // namespace cofferdam::sandbox
