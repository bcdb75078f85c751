#include <fcntl.h>
#include <linux/keyctl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>

#include "probe/acts.h"

namespace cofferdam::probe {
namespace {

Outcome attach(pid_t pid) {
  if (::ptrace(PTRACE_SEIZE, pid, nullptr, nullptr) != 0) return denied_by(errno);
  ::ptrace(PTRACE_INTERRUPT, pid, nullptr, nullptr);
  int status = 0;
  if (::waitpid(pid, &status, __WALL) == pid) ::ptrace(PTRACE_DETACH, pid, nullptr, nullptr);
  return outcome(0);
}

Outcome trace_init(const Args&) {
  return attach(1);
}

Outcome trace_child(const Args&) {
  const pid_t pid = ::fork();
  if (pid < 0) return failed("fork");
  if (pid == 0) {
    while (true) ::pause();
  }
  Outcome found = attach(pid);
  ::kill(pid, SIGKILL);
  ::waitpid(pid, nullptr, 0);
  return found;
}

// PID 1's memory where its own program begins: the same static file is at the same place in it and its
// launcher, but all that matters is whether the kernel lets us.
Outcome read_init(const Args&) {
  char byte = 0;
  iovec here{&byte, 1};
  iovec there{&byte, 1};  // an address that may not be mapped there: EFAULT is an answer of the copy
  if (::process_vm_readv(1, &here, 1, &there, 1, 0) >= 0 || errno == EFAULT) return outcome(0);
  return denied_by(errno);
}

Outcome take_descriptor_of_init(const Args&) {
  const int fd = static_cast<int>(::syscall(SYS_pidfd_open, 1, 0));
  if (fd < 0) return failed("pidfd_open");
  return outcome(::syscall(SYS_pidfd_getfd, fd, 3, 0));
}

// The soft limit as it is: nothing changes for PID 1.
Outcome limit_init(const Args& args) {
  const auto resource = static_cast<__rlimit_resource>(number(args, 0));
  rlimit limit{};
  if (::prlimit(1, resource, nullptr, &limit) != 0) return denied_by(errno);
  return outcome(::prlimit(1, resource, &limit, nullptr));
}

Outcome nice_init(const Args&) {
  errno = 0;
  const int now = ::getpriority(PRIO_PROCESS, 1);
  if (errno != 0) return failed("getpriority");
  return outcome(::setpriority(PRIO_PROCESS, 1, now));
}

Outcome pin_init(const Args&) {
  cpu_set_t set;
  if (::sched_getaffinity(1, sizeof set, &set) != 0) return failed("sched_getaffinity");
  return outcome(::sched_setaffinity(1, sizeof set, &set));
}

// As long as somebody who looks now and then needs to have looked.
void hold(long milliseconds) {
  ::poll(nullptr, 0, static_cast<int>(milliseconds));
}

// COUNT MILLISECONDS: so many processes at once, each of which only waits.
Outcome fork_many(const Args& args) {
  std::vector<pid_t> children;
  const auto wanted = static_cast<std::size_t>(number(args, 0));
  children.reserve(wanted);
  Outcome found = outcome(0);
  while (children.size() < wanted) {
    const pid_t pid = ::fork();
    if (pid == 0) {
      while (true) ::pause();
    }
    if (pid < 0) {
      found = denied_by(errno);
      break;
    }
    children.push_back(pid);
  }
  if (found.kind == Outcome::Kind::allowed) hold(number(args, 1));
  for (const pid_t pid : children) ::kill(pid, SIGKILL);
  for (const pid_t pid : children) ::waitpid(pid, nullptr, 0);
  return found;
}

// BYTES MILLISECONDS: taken and touched, and held.
Outcome take_memory(const Args& args) {
  const auto size = static_cast<std::size_t>(number(args, 0));
  void* memory = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return denied_by(errno);
  std::memset(memory, 1, size);
  hold(number(args, 1));
  return outcome(0);
}

Outcome raise_limit(const Args& args) {
  const auto resource = static_cast<__rlimit_resource>(number(args, 0));
  rlimit limit{};
  if (::getrlimit(resource, &limit) != 0) return failed("getrlimit");
  const auto wanted = static_cast<rlim_t>(number(args, 1));
  if (limit.rlim_max >= wanted) return outcome(0);
  return {Outcome::Kind::denied, "the hard limit is " + std::to_string(limit.rlim_max)};
}

Outcome add_key(const Args&) {
  return outcome(::syscall(SYS_add_key, "user", "cofferdam-probe", "x", 1, KEY_SPEC_PROCESS_KEYRING));
}

Outcome join_keyring(const Args&) {
  return outcome(::syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, nullptr, 0, 0, 0));
}

Outcome spawn_child(const Args&) {
  const pid_t pid = ::fork();
  if (pid == 0) ::_exit(0);
  if (pid > 0) ::waitpid(pid, nullptr, 0);
  return outcome(pid);
}

}  // namespace

std::vector<Act> process_acts() {
  return {{"trace-init", trace_init},   {"trace-child", trace_child},
          {"read-init", read_init},     {"take-descriptor-of-init", take_descriptor_of_init},
          {"limit-init", limit_init},   {"nice-init", nice_init},
          {"pin-init", pin_init},       {"fork-many", fork_many},
          {"take-memory", take_memory}, {"raise-limit", raise_limit},
          {"add-key", add_key},         {"join-keyring", join_keyring},
          {"spawn-child", spawn_child}};
}

}  // namespace cofferdam::probe
