#include "sandbox/native/seccomp_filter.h"

#include <fmt/core.h>
#include <linux/audit.h>
#include <linux/seccomp.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>

namespace cofferdam::sandbox {
namespace {

#if !defined(__x86_64__)
#error "the table has the numbers of x86-64"
#endif
constexpr std::uint32_t kArch = AUDIT_ARCH_X86_64;
constexpr std::uint32_t kX32Bit = 0x40000000;   // and every number above: no call of this architecture
constexpr std::uint32_t kSkipped = 0xFFFFFFFF;  // a tracer took the call away; the kernel does nothing
constexpr std::uint32_t kErrnoMask = SECCOMP_RET_DATA;

using Program = std::vector<sock_filter>;

std::uint32_t deny(int error) {
  return SECCOMP_RET_ERRNO | (static_cast<std::uint32_t>(error) & kErrnoMask);
}

// Written from its end: jumps of a filter lead forward only, so what a branch leads to is there already and
// can be shared. A label is a place counted from the end.
class Assembler {
 public:
  using Label = std::size_t;

  Label answer(std::uint32_t action) {
    const auto known = answers_.find(action);
    if (known != answers_.end() && reversed_.size() - known->second < kReach) return known->second;
    return answers_[action] = put({BPF_RET | BPF_K, 0, 0, action});
  }
  Label branch(unsigned test, std::uint32_t k, Label yes, Label no) {
    yes = within_reach(yes);
    no = within_reach(no);
    return put({static_cast<std::uint16_t>(BPF_JMP | test | BPF_K), distance(yes), distance(no), k});
  }
  // `then` has to be what was written last, or is led to.
  Label before(unsigned code, std::uint32_t k, Label then) {
    if (then + 1 != reversed_.size()) jump(then);
    return put({static_cast<std::uint16_t>(code), 0, 0, k});
  }
  Program take() {
    std::reverse(reversed_.begin(), reversed_.end());
    return std::move(reversed_);
  }

 private:
  // A branch jumps over 255 instructions at most, and two hops may stand before it.
  static constexpr std::size_t kReach = 250;

  Label put(const sock_filter& one) {
    reversed_.push_back(one);
    return reversed_.size() - 1;
  }
  Label jump(Label to) {
    return put({BPF_JMP | BPF_JA, 0, 0, static_cast<std::uint32_t>(reversed_.size() - to - 1)});
  }
  Label within_reach(Label to) { return reversed_.size() - to < kReach ? to : jump(to); }
  std::uint8_t distance(Label to) const { return static_cast<std::uint8_t>(reversed_.size() - to - 1); }

  Program reversed_;
  std::map<std::uint32_t, Label> answers_;
};

Assembler::Label write_test(const ArgumentTest& test, Assembler::Label yes, Assembler::Label no,
                            Assembler* out) {
  Assembler::Label at = no;
  if (test.is == ArgumentTest::Is::any_bit) {
    at = out->branch(BPF_JSET, test.mask, yes, no);
  } else {
    const bool any = test.is == ArgumentTest::Is::any_of;
    at = any ? no : yes;
    for (std::size_t i = test.values.size(); i-- > 0;)
      at = out->branch(BPF_JEQ, test.values[i], any ? yes : no, at);
    if (test.mask != 0xFFFFFFFFU) at = out->before(BPF_ALU | BPF_AND | BPF_K, test.mask, at);
  }
  // The low half of a 64-bit argument comes first: this machine is little-endian.
  const std::size_t offset = offsetof(seccomp_data, args) + 8 * std::size_t{test.argument};
  return out->before(BPF_LD | BPF_W | BPF_ABS, static_cast<std::uint32_t>(offset), at);
}

// Numbers from `first` on, up to the next range. With rules, the first whose tests all hold answers.
struct Range {
  std::uint32_t first = 0;
  std::uint32_t action = SECCOMP_RET_ALLOW;  // when no rule does
  std::vector<const SyscallRule*> rules = {};
};

Assembler::Label write_range(const Range& range, Assembler* out) {
  Assembler::Label at = out->answer(range.action);
  for (std::size_t i = range.rules.size(); i-- > 0;) {
    const SyscallRule& rule = *range.rules[i];
    const Assembler::Label otherwise = at;
    at = out->answer(deny(rule.error));
    for (std::size_t j = rule.when.size(); j-- > 0;) at = write_test(rule.when[j], at, otherwise, out);
  }
  return at;
}

void add_range(Range range, std::vector<Range>* out) {
  const bool same =
      !out->empty() && out->back().rules.empty() && range.rules.empty() && out->back().action == range.action;
  if (!same) out->push_back(std::move(range));
}

Range range_of(std::uint32_t number, const std::vector<const SyscallRule*>& rules) {
  const bool always = rules.front()->when.empty();
  return always ? Range{number, deny(rules.front()->error)} : Range{number, SECCOMP_RET_ALLOW, rules};
}

std::vector<Range> ranges(RuleScope scope) {
  std::map<std::uint32_t, std::vector<const SyscallRule*>> calls;
  for (const SyscallRule& rule : syscall_rules()) {
    const bool part = rule.scope == RuleScope::always || rule.scope == scope;
    if (part && rule.error != 0) calls[rule.number].push_back(&rule);
  }
  std::vector<Range> out;
  std::uint32_t next = 0;
  for (const auto& [number, rules] : calls) {
    if (number > next) add_range({next}, &out);
    add_range(range_of(number, rules), &out);
    next = number + 1;
  }
  if (next <= kNewestJudged) add_range({next}, &out);
  add_range({kNewestJudged + 1, deny(ENOSYS)}, &out);
  add_range({kX32Bit, SECCOMP_RET_KILL_PROCESS}, &out);
  add_range({kSkipped, SECCOMP_RET_ALLOW}, &out);
  return out;
}

// A tree of comparisons over the ranges [begin, end).
Assembler::Label write_tree(const std::vector<Range>& all, std::size_t begin, std::size_t end,
                            Assembler* out) {
  if (end - begin == 1) return write_range(all[begin], out);
  const std::size_t middle = begin + (end - begin) / 2;
  const Assembler::Label upper = write_tree(all, middle, end, out);
  const Assembler::Label lower = write_tree(all, begin, middle, out);
  return out->branch(BPF_JGE, all[middle].first, upper, lower);
}

std::string error_name(int error) {
  const char* name = ::strerrorname_np(error);
  return name == nullptr ? std::to_string(error) : name;
}

std::string action_text(std::uint32_t action) {
  switch (action & SECCOMP_RET_ACTION_FULL) {
    case SECCOMP_RET_ALLOW:
      return "ALLOW";
    case SECCOMP_RET_KILL_PROCESS:
      return "KILL_PROCESS";
    default:
      return "ERRNO " + error_name(static_cast<int>(action & kErrnoMask));
  }
}

const char* field_name(std::uint32_t offset) {
  static const char* const arguments[] = {"low 32 bits of argument 0", "low 32 bits of argument 1",
                                          "low 32 bits of argument 2", "low 32 bits of argument 3",
                                          "low 32 bits of argument 4", "low 32 bits of argument 5"};
  if (offset == offsetof(seccomp_data, nr)) return "number";
  if (offset == offsetof(seccomp_data, arch)) return "architecture";
  return arguments[(offset - offsetof(seccomp_data, args)) / 8];
}

std::string instruction_text(const sock_filter& one, std::size_t at) {
  switch (one.code) {
    case BPF_LD | BPF_W | BPF_ABS:
      return fmt::format("load {}", field_name(one.k));
    case BPF_ALU | BPF_AND | BPF_K:
      return fmt::format("and {:#x}", one.k);
    case BPF_RET | BPF_K:
      return action_text(one.k);
    case BPF_JMP | BPF_JA:
      return fmt::format("go to {}", at + 1 + one.k);
    default:
      break;
  }
  const unsigned test = BPF_OP(one.code);
  const char* sign = test == BPF_JGE ? ">=" : test == BPF_JSET ? "&" : "==";
  return fmt::format("if {} {:#x} go to {} else {}", sign, one.k, at + 1 + one.jt, at + 1 + one.jf);
}

std::string listing(const char* title, RuleScope scope) {
  const Program program = compile_filter(scope);
  std::string out = fmt::format("\n{}: {} instructions\n", title, program.size());
  for (std::size_t at = 0; at < program.size(); ++at)
    out += fmt::format("{:>4}  {}\n", at, instruction_text(program[at], at));
  return out;
}

}  // namespace

std::vector<sock_filter> compile_filter(RuleScope scope) {
  const std::vector<Range> all = ranges(scope);
  Assembler out;
  const Assembler::Label calls =
      out.before(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr), write_tree(all, 0, all.size(), &out));
  // Any other architecture's numbers mean other calls (ia32 socketcall hides the family): such a process
  // ends.
  const Assembler::Label foreign = out.answer(SECCOMP_RET_KILL_PROCESS);
  out.before(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, arch),
             out.branch(BPF_JEQ, kArch, calls, foreign));
  return out.take();
}

std::string compile_seccomp_filter(RuleScope scope) {
  const Program program = compile_filter(scope);
  return {reinterpret_cast<const char*>(program.data()), program.size() * sizeof(sock_filter)};  // NOLINT
}

std::string seccomp_text() {
  std::string out = fmt::format("{:<24} {:<7} {:<54} {}\n", "CALL", "ANSWER", "WHEN", "REASON");
  for (const SyscallRule& rule : syscall_rules()) {
    std::string when = condition_text(rule);
    if (rule.scope == RuleScope::without_shell) when += ", shell none";
    out += fmt::format("{:<24} {:<7} {:<54} {}\n", rule.name,
                       rule.error == 0 ? "ALLOW" : error_name(rule.error), when, rule.reason);
  }
  out += fmt::format("{:<24} {:<7} {:<54} {}\n", fmt::format("numbers from {} on", kNewestJudged + 1),
                     "ENOSYS", "always", "newer than this table; programs fall back");
  out += fmt::format("{:<24} {:<7} {:<54} {}\n", "other architectures, x32", "KILL", "always",
                     "their numbers mean other calls");
  out += "Every other call is allowed.\n";
  return out + listing("shell sandboxed", RuleScope::always) +
         listing("shell none", RuleScope::without_shell);
}

}  // namespace cofferdam::sandbox
