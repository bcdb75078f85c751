// The table of system calls, compiled on the host into bytes that init only loads: a binary tree over ranges
// of numbers, so that loading and checking stay cheap (docs/decisions/0006-seccomp-deny-list.md).
//
// Thread rules: pure functions.
#pragma once

#include <linux/filter.h>

#include <string>
#include <vector>

#include "sandbox/native/seccomp_table.h"

namespace cofferdam::sandbox {

// `scope`: which rows beside those that are always there.
std::vector<sock_filter> compile_filter(RuleScope scope);
// The same as bytes of struct sock_filter[], for the plan.
std::string compile_seccomp_filter(RuleScope scope);

// What `cofferdam doctor --seccomp` prints: the table with its reasons, then both filters, one instruction a
// line.
std::string seccomp_text();

}  // namespace cofferdam::sandbox
