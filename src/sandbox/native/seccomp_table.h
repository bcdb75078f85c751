// What programs in a box may ask the kernel for, as data: one table, a reason per row. The filter
// (seccomp_filter.h), what `cofferdam doctor --seccomp` prints and the tests are made from it.
//
// Everything that is not named is allowed, up to the newest call that has been judged: the box's other layers
// do not rest on the filter; it takes kernel surface away. Newer calls do not exist in a box.
//
// Thread rules: pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace cofferdam::sandbox {

// A condition on the low 32 bits of one argument: the kernel looks at no more of an int, and a filter that
// does let TIOCSTI through (CVE-2019-10063).
struct ArgumentTest {
  enum class Is {
    any_of,   // masked, it is one of the values
    none_of,  // masked, it is none of them
    any_bit,  // it has a bit of the mask
  };
  unsigned argument = 0;  // 0..5
  Is is = Is::any_of;
  std::uint32_t mask = 0xFFFFFFFFU;
  std::vector<std::uint32_t> values = {};
};

// When a row is part of the filter.
enum class RuleScope { always, without_shell };

struct SyscallRule {
  const char* name;
  std::uint32_t number;
  int error;  // errno that the caller gets; 0: judged, and allowed
  const char* reason;
  std::vector<ArgumentTest> when = {};  // all of them; none: whatever the arguments
  RuleScope scope = RuleScope::always;
};

const std::vector<SyscallRule>& syscall_rules();

// The highest number that the table has judged. What a later kernel adds gets ENOSYS.
inline constexpr std::uint32_t kNewestJudged = 470;

// "argument 1 in 0x5412 0x541c, argument 0 is not 0x1"; "always" without a condition.
std::string condition_text(const SyscallRule& rule);

}  // namespace cofferdam::sandbox
