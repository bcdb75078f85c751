// The system-call filter: its table as text, and what the compiled bytes answer.
#include <fcntl.h>
#include <fmt/core.h>
#include <gtest/gtest.h>
#include <linux/audit.h>
#include <linux/sched.h>
#include <seccomp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <random>
#include <set>

#include "golden/bpf.h"
#include "golden/golden.h"
#include "sandbox/native/seccomp_filter.h"

namespace cofferdam::golden {
namespace {

constexpr std::uint64_t kHigh = 1ULL << 32U;  // a bit that the kernel does not look at in an int argument
using Arguments = std::vector<std::uint64_t>;

const std::vector<sock_filter>& filter() {
  static const std::vector<sock_filter> program = [] {
    return instructions_of(sandbox::compile_seccomp_filter(sandbox::RuleScope::always));
  }();
  return program;
}

Verdict ask(std::uint32_t arch, long number, const Arguments& arguments) {
  seccomp_data data{};
  data.nr = static_cast<int>(number);
  data.arch = arch;
  data.instruction_pointer = 0x7fff12345678;
  for (std::size_t i = 0; i < arguments.size(); ++i) data.args[i] = arguments[i];
  return evaluate(filter(), data);
}

std::string verdict(long number, const Arguments& arguments = {}) {
  return action_name(ask(AUDIT_ARCH_X86_64, number, arguments));
}

TEST(FilterTable, Text) {
  expect_golden("seccomp", sandbox::seccomp_text());
}

TEST(FilterTable, RowsHaveReasonsAndKnownAnswers) {
  std::set<std::string> rows;
  for (const sandbox::SyscallRule& rule : sandbox::syscall_rules()) {
    EXPECT_TRUE(rows.insert(rule.name + (" " + sandbox::condition_text(rule))).second) << rule.name;
    EXPECT_STRNE(rule.reason, "") << rule.name;
    const std::set<int> answers = {0, EPERM, ENOSYS, EACCES};
    EXPECT_EQ(answers.count(rule.error), 1U) << rule.name;
    EXPECT_TRUE(rule.when.empty() || rule.error != 0) << rule.name;
  }
}

// Another table of names and numbers than ours.
TEST(FilterTable, NumbersAreThoseOfTheirNames) {
  int known = 0;
  for (const sandbox::SyscallRule& rule : sandbox::syscall_rules()) {
    const int number = seccomp_syscall_resolve_name(rule.name);
    if (number == __NR_SCMP_ERROR) continue;  // newer than this libseccomp
    EXPECT_EQ(static_cast<int>(rule.number), number) << rule.name;
    ++known;
  }
  EXPECT_GT(known, 90);
}

// A kernel's new call is judged before a box can have it.
TEST(FilterTable, EveryNewerCallIsJudgedAndLaterOnesDoNotExist) {
  std::set<std::uint32_t> judged;
  for (const sandbox::SyscallRule& rule : sandbox::syscall_rules()) judged.insert(rule.number);
  for (std::uint32_t number = 440; number <= sandbox::kNewestJudged; ++number)
    EXPECT_EQ(judged.count(number), 1U) << number;
  EXPECT_EQ(*judged.rbegin(), sandbox::kNewestJudged);
  for (long number : {long{sandbox::kNewestJudged} + 1, 512L, 1000L, 0x3FFFFFFFL})
    EXPECT_EQ(verdict(number), "ERRNO ENOSYS") << number;
}

TEST(Filter, EveryRuleOfTheTableIsCompiled) {
  for (const sandbox::SyscallRule& rule : sandbox::syscall_rules()) {
    if (!rule.when.empty()) continue;  // by argument: below
    const std::string wanted =
        rule.error == 0 ? "ALLOW" : std::string("ERRNO ") + ::strerrorname_np(rule.error);
    EXPECT_EQ(verdict(rule.number), wanted) << rule.name;
    EXPECT_EQ(verdict(rule.number, Arguments(6, ~0ULL)), wanted) << rule.name << " whatever the arguments";
  }
}

// The rows themselves, without a filter.
bool holds(const sandbox::ArgumentTest& test, const Arguments& arguments) {
  const auto value = static_cast<std::uint32_t>(arguments[test.argument]);
  const bool found =
      std::find(test.values.begin(), test.values.end(), value & test.mask) != test.values.end();
  switch (test.is) {
    case sandbox::ArgumentTest::Is::any_of:
      return found;
    case sandbox::ArgumentTest::Is::none_of:
      return !found;
    case sandbox::ArgumentTest::Is::any_bit:
      return (value & test.mask) != 0;
  }
  return false;
}

std::string by_the_table(std::uint32_t number, const Arguments& arguments, sandbox::RuleScope scope) {
  for (const sandbox::SyscallRule& rule : sandbox::syscall_rules()) {
    const bool part = rule.scope == sandbox::RuleScope::always || rule.scope == scope;
    const auto met = [&arguments](const sandbox::ArgumentTest& test) { return holds(test, arguments); };
    if (!part || rule.number != number || !std::all_of(rule.when.begin(), rule.when.end(), met)) continue;
    return rule.error == 0 ? "ALLOW" : std::string("ERRNO ") + ::strerrorname_np(rule.error);
  }
  return number <= sandbox::kNewestJudged ? "ALLOW" : "ERRNO ENOSYS";
}

// The compiled tree answers what a reading of the table from top to bottom does, for every call that is
// judged and for arguments around every value that the table names.
TEST(Filter, TheTreeAnswersAsTheTableDoes) {
  std::vector<std::uint64_t> near = {0, 1, ~0ULL};
  for (const sandbox::SyscallRule& rule : sandbox::syscall_rules()) {
    for (const sandbox::ArgumentTest& test : rule.when) {
      for (std::uint32_t value : test.values) {
        for (std::uint64_t one : {std::uint64_t{value} - 1, std::uint64_t{value}, value + kHigh})
          near.push_back(one);
      }
      near.push_back(test.mask);
    }
  }
  std::mt19937_64 random(470);
  for (sandbox::RuleScope scope : {sandbox::RuleScope::always, sandbox::RuleScope::without_shell}) {
    const std::vector<sock_filter> program = sandbox::compile_filter(scope);
    for (std::uint32_t number = 0; number < 600; ++number) {
      for (int i = 0; i < 200; ++i) {
        seccomp_data data{};
        data.nr = static_cast<int>(number);
        data.arch = AUDIT_ARCH_X86_64;
        Arguments arguments;
        for (auto& value : data.args) arguments.push_back(value = near[random() % near.size()]);
        ASSERT_EQ(action_name(evaluate(program, data)), by_the_table(number, arguments, scope)) << number;
      }
    }
  }
}

TEST(Filter, MemoryFilesWithoutAShellHaveNoProgramsInThem) {
  const std::vector<sock_filter> strict = sandbox::compile_filter(sandbox::RuleScope::without_shell);
  for (std::uint64_t flags : {0ULL, 1ULL /* CLOEXEC */, 2ULL /* ALLOW_SEALING */, 0x10ULL /* EXEC */,
                              kHigh | 1ULL, 8ULL /* NOEXEC_SEAL */, 9ULL, 8ULL | kHigh}) {
    seccomp_data data{};
    data.nr = SYS_memfd_create;
    data.arch = AUDIT_ARCH_X86_64;
    data.args[1] = flags;
    EXPECT_EQ(action_name(evaluate(strict, data)), (flags & 8U) != 0 ? "ALLOW" : "ERRNO EACCES") << flags;
    EXPECT_EQ(verdict(SYS_memfd_create, {0, flags}), "ALLOW") << "the control: with a shell";
  }
}

TEST(Filter, OrdinaryCallsAreAllowed) {
  for (long number : {SYS_read,
                      SYS_write,
                      SYS_openat,
                      SYS_close,
                      SYS_mmap,
                      SYS_futex,
                      SYS_execve,
                      SYS_execveat,
                      SYS_exit_group,
                      SYS_fork,
                      SYS_vfork,
                      SYS_wait4,
                      SYS_kill,
                      SYS_ptrace,
                      SYS_pipe2,
                      SYS_connect,
                      SYS_bind,
                      SYS_accept4,
                      SYS_memfd_create,
                      SYS_prctl,
                      SYS_seccomp,
                      SYS_rename,
                      SYS_link,
                      SYS_symlink,
                      SYS_chmod,
                      SYS_setxattr,
                      SYS_statx,
                      SYS_openat2,
                      SYS_close_range,
                      SYS_getrandom,
                      SYS_rseq,

                      SYS_inotify_init1,
                      SYS_epoll_pwait2,
                      SYS_flock,
                      SYS_landlock_create_ruleset,
                      SYS_process_vm_readv,
                      SYS_pidfd_open,
                      SYS_copy_file_range}) {
    EXPECT_EQ(verdict(number), "ALLOW") << number;
    EXPECT_EQ(verdict(number, Arguments(6, ~0ULL)), "ALLOW") << number;
  }
  EXPECT_EQ(verdict(-1), "ALLOW") << "a call that a debugger took away";
}

TEST(Filter, CloneWithANamespaceIsDenied) {
  const std::uint64_t thread = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD |
                               CLONE_SYSVSEM | CLONE_SETTLS | CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID;
  const std::uint64_t harmless[] = {0, 17 /* SIGCHLD */, thread, CLONE_VM | CLONE_VFORK | 17,
                                    CLONE_PIDFD | CLONE_PTRACE | 17};
  for (std::uint64_t flags : harmless) {
    EXPECT_EQ(verdict(SYS_clone, {flags}), "ALLOW") << flags;
    for (std::uint64_t ns : Arguments{CLONE_NEWUSER, CLONE_NEWNS, CLONE_NEWPID, CLONE_NEWNET, CLONE_NEWIPC,
                                      CLONE_NEWUTS, CLONE_NEWCGROUP}) {
      EXPECT_EQ(verdict(SYS_clone, {flags | ns}), "ERRNO EPERM") << ns;
      EXPECT_EQ(verdict(SYS_clone, {flags | ns | kHigh}), "ERRNO EPERM") << ns;
    }
  }
  EXPECT_EQ(verdict(SYS_clone, {~0ULL}), "ERRNO EPERM");
  EXPECT_EQ(verdict(SYS_clone3, {0, 0}), "ERRNO ENOSYS") << "programs then fall back to clone";
}

bool family_allowed(std::uint64_t family) {
  return family == AF_UNIX || family == AF_INET || family == AF_INET6 || family == AF_NETLINK;
}

TEST(Filter, SocketFamilies) {
  for (std::uint64_t family = 0; family < 64; ++family) {
    SCOPED_TRACE(family);
    EXPECT_EQ(verdict(SYS_socket, {family, SOCK_STREAM, 0}),
              family_allowed(family) ? "ALLOW" : "ERRNO EPERM");
    // The kernel sees only the low half. Denying an allowed family for its high bits harms nobody; allowing a
    // denied one would be CVE-2019-10063 again.
    if (!family_allowed(family)) {
      EXPECT_EQ(verdict(SYS_socket, {family | kHigh, SOCK_STREAM, 0}), "ERRNO EPERM");
      EXPECT_EQ(verdict(SYS_socket, {family | 0xFFFFFFFF00000000ULL, SOCK_RAW, 0}), "ERRNO EPERM");
    }
  }
  std::mt19937_64 random(20261130);
  for (int i = 0; i < 10'000; ++i) {
    const std::uint64_t family = random() >> (random() % 64);
    if (family_allowed(family & 0xFFFFFFFFU)) continue;
    ASSERT_EQ(verdict(SYS_socket, {family, SOCK_DGRAM, 0}), "ERRNO EPERM") << family;
  }
  for (std::uint64_t family : {64ULL, 65ULL, 255ULL, 0x7FFFFFFFULL, 0x80000000ULL, 0xFFFFFFFFULL, ~0ULL}) {
    EXPECT_EQ(verdict(SYS_socket, {family, SOCK_STREAM, 0}), "ERRNO EPERM") << family;
  }
}

// The control is "only these families": socketpair(2) makes sockets, and loads protocol modules, as well.
TEST(Filter, SocketpairFamilies) {
  EXPECT_EQ(verdict(SYS_socketpair, {AF_UNIX, SOCK_STREAM, 0}), "ALLOW");
  std::string allowed;
  for (std::uint64_t family = 0; family < 64; ++family) {
    if (family_allowed(family)) continue;  // the kernel has no pairs of INET, INET6 and NETLINK
    for (std::uint64_t high : Arguments{0, kHigh}) {
      if (verdict(SYS_socketpair, {family | high, SOCK_STREAM, 0}) != "ERRNO EPERM")
        allowed += fmt::format(" {:x}", family | high);
    }
  }
  EXPECT_EQ(allowed, "") << "families of which a pair can be had";
}

TEST(Filter, NetlinkIsRouteOnly) {
  for (std::uint64_t protocol = 0; protocol < 64; ++protocol) {
    EXPECT_EQ(verdict(SYS_socket, {AF_NETLINK, SOCK_RAW, protocol}), protocol == 0 ? "ALLOW" : "ERRNO EPERM")
        << protocol;
    if (protocol != 0) {
      EXPECT_EQ(verdict(SYS_socket, {AF_NETLINK, SOCK_RAW, protocol | kHigh}), "ERRNO EPERM") << protocol;
      EXPECT_EQ(verdict(SYS_socket, {AF_NETLINK | kHigh, SOCK_RAW, protocol}), "ERRNO EPERM") << protocol;
    }
  }
}

TEST(Filter, TerminalInjection) {
  for (std::uint64_t request : {0x5412ULL /* TIOCSTI */, 0x541CULL /* TIOCLINUX */}) {
    for (std::uint64_t high : Arguments{0ULL, kHigh, 0x80000000ULL << 32U, 0xFFFFFFFFULL << 32U}) {
      EXPECT_EQ(verdict(SYS_ioctl, {0, request | high, 0x1000}), "ERRNO EPERM") << (request | high);
      EXPECT_EQ(verdict(SYS_ioctl, {~0ULL, request | high, 0}), "ERRNO EPERM") << (request | high);
    }
  }
  for (std::uint64_t request :
       Arguments{TIOCGWINSZ, TCGETS, TIOCSWINSZ, FIONREAD, FIONBIO, TIOCSCTTY, FIOCLEX}) {
    EXPECT_EQ(verdict(SYS_ioctl, {0, request, 0}), "ALLOW") << request;
  }
}

TEST(Filter, NodesByType) {
  struct Case {
    mode_t type;
    const char* wanted;
  };
  for (const Case& one : {Case{S_IFCHR, "ERRNO EPERM"},
                          {S_IFBLK, "ERRNO EPERM"},
                          {S_IFIFO, "ALLOW"},
                          {S_IFSOCK, "ALLOW"},
                          {S_IFREG, "ALLOW"},
                          {0, "ALLOW"}}) {
    for (mode_t bits : {0U, 0644U, 07777U}) {
      const std::uint64_t mode = one.type | bits;
      for (std::uint64_t device : {0ULL /* a whiteout */, 0x103ULL}) {
        EXPECT_EQ(verdict(SYS_mknod, {0x1000, mode, device}), one.wanted) << mode;
        EXPECT_EQ(verdict(SYS_mknodat, {3, 0x1000, mode, device}), one.wanted) << mode;
        if (std::string(one.wanted) != "ALLOW") {
          EXPECT_EQ(verdict(SYS_mknod, {0x1000, mode | kHigh, device}), one.wanted) << mode;
          EXPECT_EQ(verdict(SYS_mknodat, {3, 0x1000, mode | kHigh, device}), one.wanted) << mode;
          EXPECT_EQ(verdict(SYS_mknod, {0x1000, mode | 0x10000, device}), one.wanted) << "umode_t is 16 bits";
        }
      }
    }
  }
}

TEST(Filter, OtherArchitecturesAreKilled) {
  for (std::uint32_t arch : {std::uint32_t{AUDIT_ARCH_I386}, std::uint32_t{AUDIT_ARCH_ARM},
                             std::uint32_t{AUDIT_ARCH_AARCH64}, 0U, 0xFFFFFFFFU}) {
    for (long number : {0L, 1L, 102L /* socketcall */, long{SYS_read}, long{SYS_mount}}) {
      EXPECT_EQ(action_name(ask(arch, number, {})), "KILL_PROCESS") << arch << " " << number;
    }
  }
  for (long number : {0x40000000L, 0x40000001L, 0x40000000L + SYS_mount, 0x40000000L + 512, 0x7FFFFFFFL,
                      0x80000000L, 0xFFFFFFFEL}) {
    EXPECT_EQ(verdict(number), "KILL_PROCESS") << "x32 number " << number;
  }
}

// Loading costs by the instruction, and every call of a program runs some: the usual ones a handful.
TEST(Filter, SizeAndDepth) {
  ASSERT_FALSE(filter().empty());
  EXPECT_LT(filter().size(), 150U);
  EXPECT_LT(sandbox::compile_filter(sandbox::RuleScope::without_shell).size(), 150U);
  EXPECT_LE(filter().size(), static_cast<std::size_t>(BPF_MAXINSNS));
  for (long number : {SYS_read, SYS_write, SYS_openat, SYS_mmap, SYS_futex, SYS_stat, SYS_clone, SYS_ioctl}) {
    EXPECT_LT(ask(AUDIT_ARCH_X86_64, number, {}).steps, 14U) << number;
  }
}

// Nothing makes it run off its end, and nothing but the three actions comes out.
TEST(Filter, EveryAnswerIsOneOfThree) {
  const std::set<std::string> known = {"ALLOW", "ERRNO EPERM", "ERRNO ENOSYS", "KILL_PROCESS"};
  std::mt19937_64 random(7);
  for (int i = 0; i < 50'000; ++i) {
    Arguments arguments;
    for (int j = 0; j < 6; ++j) arguments.push_back(random() >> (random() % 64));
    const long number = i < 1000 ? i : static_cast<long>(random() & 0xFFFFFFFFU);
    Verdict answer = ask(random() % 8 == 0 ? AUDIT_ARCH_I386 : AUDIT_ARCH_X86_64, number, arguments);
    ASSERT_EQ(known.count(action_name(answer)), 1U) << number << " " << action_name(answer);
  }
}

// The interpreter itself refuses what the kernel's verifier would.
TEST(Bpf, BrokenProgramsHaveNoVerdict) {
  const seccomp_data data{};
  using Program = std::vector<sock_filter>;
  EXPECT_FALSE(evaluate({}, data).valid);
  EXPECT_FALSE(evaluate(Program{{BPF_LD | BPF_W | BPF_ABS, 0, 0, 0}}, data).valid) << "no return";
  EXPECT_FALSE(evaluate(Program{{BPF_LD | BPF_W | BPF_ABS, 0, 0, 64}, {BPF_RET, 0, 0, 0}}, data).valid);
  EXPECT_FALSE(evaluate(Program{{BPF_LD | BPF_W | BPF_ABS, 0, 0, 2}, {BPF_RET, 0, 0, 0}}, data).valid);
  EXPECT_FALSE(evaluate(Program{{BPF_JMP | BPF_JA, 0, 0, 9}, {BPF_RET, 0, 0, 0}}, data).valid);
  EXPECT_FALSE(evaluate(Program{{0xFFFF, 0, 0, 0}, {BPF_RET, 0, 0, 0}}, data).valid);
  EXPECT_EQ(action_name(evaluate(Program{{BPF_RET, 0, 0, SECCOMP_RET_ALLOW}}, data)), "ALLOW");
  EXPECT_TRUE(instructions_of(std::string(7, '\0')).empty());
}

}  // namespace
}  // namespace cofferdam::golden
