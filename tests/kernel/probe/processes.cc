// Other processes, and ours as others see it.
#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>

#include "acts.h"

namespace box_probe {
namespace {

// A child that only waits. Everything in `use` happens while it does.
template <typename Use>
int with_child(Use use) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    while (true) ::pause();
  }
  if (pid < 0) return errno;
  const int error = use(pid);
  ::kill(pid, SIGKILL);
  ::waitpid(pid, nullptr, 0);
  return error;
}

int attach(pid_t pid) {
  if (::ptrace(PTRACE_ATTACH, pid, nullptr, nullptr) != 0) return errno;
  int status = 0;
  if (::waitpid(pid, &status, 0) != pid) return errno;
  return outcome(::ptrace(PTRACE_DETACH, pid, nullptr, nullptr));
}

int read_memory(pid_t pid) {
  static const int kSecret = 4711;  // at the same place in a child
  int copy = 0;
  iovec here{&copy, sizeof copy};
  iovec there{const_cast<int*>(&kSecret), sizeof kSecret};  // NOLINT
  if (::process_vm_readv(pid, &here, 1, &there, 1, 0) < 0) return errno;
  return copy == kSecret ? 0 : ENODATA;
}

int get_descriptor(pid_t pid) {
  const int fd = static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
  if (fd < 0) return errno;
  return outcome(::syscall(SYS_pidfd_getfd, fd, 1, 0));
}

int ptrace_init(const Args&) {
  return attach(1);
}
int ptrace_child(const Args&) {
  return with_child(attach);
}
int vm_readv_init(const Args&) {
  return read_memory(1);
}
int vm_readv_child(const Args&) {
  return with_child(read_memory);
}
int pidfd_getfd_init(const Args&) {
  return get_descriptor(1);
}
int pidfd_getfd_child(const Args&) {
  return with_child(get_descriptor);
}
int kill_child(const Args&) {
  return with_child([](pid_t pid) { return outcome(::kill(pid, SIGKILL)); });
}

// The state letter of /proc/PID/stat, behind the last parenthesis.
char state_of(const std::string& pid) {
  std::ifstream file("/proc/" + pid + "/stat");
  std::string line;
  std::getline(file, line);
  const std::size_t end = line.rfind(')');
  return end == std::string::npos || end + 2 >= line.size() ? '?' : line[end + 2];
}

// Every signal to PID 1, which the kernel lets through only when PID 1 asked for it.
int signal_init(const Args&) {
  int sent = 0;
  for (int signal = 1; signal <= 64; ++signal) {
    if (signal == 32 || signal == 33) continue;  // the C library's own
    if (::kill(1, signal) == 0) ++sent;
  }
  // It has had its turn once it has answered something: reaping a child of ours is PID 1's work.
  const pid_t middle = ::fork();
  if (middle == 0) {
    if (::fork() == 0) ::_exit(0);
    ::_exit(0);
  }
  ::waitpid(middle, nullptr, 0);
  std::printf("sent %d, init is %c\n", sent, state_of("1"));
  return 0;
}

// Limits and scheduling of another process: the kernel asks only for the same uid.
int limit_process(pid_t pid, const Args& args) {
  const auto resource = static_cast<__rlimit_resource>(number(args, 0));
  rlimit limit{};
  if (::prlimit(pid, resource, nullptr, &limit) != 0) return errno;
  limit.rlim_cur = std::min<rlim_t>(limit.rlim_cur, 60);
  limit.rlim_max = limit.rlim_cur;
  return outcome(::prlimit(pid, resource, &limit, nullptr));
}

int make_idle(pid_t pid) {
  const sched_param parameters{};
  return outcome(::sched_setscheduler(pid, SCHED_IDLE, &parameters));
}

int pin(pid_t pid) {
  cpu_set_t set;
  if (::sched_getaffinity(pid, sizeof set, &set) != 0) return errno;
  return outcome(::sched_setaffinity(pid, sizeof set, &set));
}

int limit_init(const Args& args) {
  return limit_process(1, args);
}
int limit_self(const Args& args) {
  return limit_process(0, args);
}
int idle_init(const Args&) {
  return make_idle(1);
}
int idle_child(const Args&) {
  return with_child(make_idle);
}
int nice_init(const Args&) {
  return outcome(::setpriority(PRIO_PROCESS, 1, 19));
}
int nice_child(const Args&) {
  return with_child(
      [](pid_t pid) { return outcome(::setpriority(PRIO_PROCESS, static_cast<id_t>(pid), 19)); });
}
int pin_init(const Args&) {
  return pin(1);
}
int pin_child(const Args&) {
  return with_child(pin);
}

// Makes PID 1 use up a second of processor time that it has been limited to.
int wear_out_init(const Args&) {
  const rlimit second{1, 1};
  if (::prlimit(1, RLIMIT_CPU, &second, nullptr) != 0) return errno;
  while (::kill(1, SIGCHLD) == 0) {
  }
  return errno;
}

int list_processes(const Args&) {
  std::vector<std::string> names;
  DIR* dir = ::opendir("/proc");
  if (dir == nullptr) return errno;
  while (const dirent* entry = ::readdir(dir)) {
    const std::string pid = entry->d_name;
    if (pid.find_first_not_of("0123456789") != std::string::npos) continue;
    std::ifstream file("/proc/" + pid + "/comm");
    std::string name;
    std::getline(file, name);
    names.push_back(name);
  }
  ::closedir(dir);
  std::sort(names.begin(), names.end());
  for (const std::string& name : names) std::printf("process %s\n", name.c_str());
  return 0;
}

int raise_core_limit(const Args&) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_CORE, &limit) != 0) return errno;
  limit.rlim_cur = 1 << 20;
  limit.rlim_max = std::max<rlim_t>(limit.rlim_max, 1 << 20);
  return outcome(::setrlimit(RLIMIT_CORE, &limit));
}

int crash(const Args&) {
  const pid_t pid = ::fork();
  if (pid == 0) ::abort();
  int status = 0;
  if (::waitpid(pid, &status, 0) != pid) return errno;
  std::printf("signal %d, core %s\n", WTERMSIG(status), WCOREDUMP(status) ? "dumped" : "not dumped");
  return 0;
}

// Holds on until it is killed: ignores what can be ignored, with a grandchild in a session of its own.
int stay(const Args&) {
  for (int signal : {SIGTERM, SIGHUP, SIGINT, SIGQUIT, SIGPIPE}) ::signal(signal, SIG_IGN);
  const pid_t pid = ::fork();
  if (pid < 0) return errno;
  if (pid == 0) {
    ::setsid();
    if (::fork() > 0) ::_exit(0);
  } else {
    ::waitpid(pid, nullptr, 0);
    std::printf("staying\n");
  }
  while (true) ::pause();
}

}  // namespace

std::vector<Act> process_acts() {
  return {{"ptrace-init", ptrace_init},
          {"ptrace-child", ptrace_child},
          {"vm-readv-init", vm_readv_init},
          {"vm-readv-child", vm_readv_child},
          {"pidfd-getfd-init", pidfd_getfd_init},
          {"pidfd-getfd-child", pidfd_getfd_child},
          {"kill-child", kill_child},
          {"signal-init", signal_init},
          {"limit-init", limit_init},
          {"limit-self", limit_self},
          {"idle-init", idle_init},
          {"idle-child", idle_child},
          {"nice-init", nice_init},
          {"nice-child", nice_child},
          {"pin-init", pin_init},
          {"pin-child", pin_child},
          {"wear-out-init", wear_out_init},
          {"list-processes", list_processes},
          {"raise-core-limit", raise_core_limit},
          {"crash", crash},
          {"stay", stay}};
}

}  // namespace box_probe
