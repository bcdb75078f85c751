#include "init/supervise.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>
#include <vector>

#include "init/landlock.h"
#include "init/protocol.h"
#include "init/restrict.h"
#include "init/sampler.h"
#include "init/sys.h"

namespace cofferdam::init {
namespace {

struct State {
  const plan::Plan* plan = nullptr;
  int signals = -1;   // signalfd(2) for SIGCHLD
  int deadline = -1;  // timerfd(2)
  int grace = -1;     // timerfd(2), armed when TERM has been sent
  int landlock = -1;  // the rules that the program enters; -1: none
  pid_t program = -1;
  Sampler sampler;
};

std::vector<char*> pointers(const std::vector<std::string>& strings) {
  std::vector<char*> out;
  for (const std::string& s : strings) out.push_back(const_cast<char*>(s.c_str()));  // NOLINT
  out.push_back(nullptr);
  return out;
}

int timer(std::uint64_t milliseconds) {
  int fd = ::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
  check(fd >= 0, "timerfd");
  if (milliseconds == 0) return fd;
  itimerspec when{};
  when.it_value.tv_sec = static_cast<time_t>(milliseconds / 1000);
  when.it_value.tv_nsec = static_cast<long>(milliseconds % 1000) * 1'000'000;
  check(::timerfd_settime(fd, 0, &when, nullptr) == 0, "timerfd_settime");
  return fd;
}

// End of file means that the supervisor is gone, which ends the box.
char receive() {
  char byte = 0;
  ssize_t n = -1;
  do {
    n = ::recv(plan::kControlFd, &byte, 1, 0);
  } while (n < 0 && errno == EINTR);
  return n == 1 ? byte : plan::to_init::kill;
}

// Everything in the box but us. The kernel ends the rest when we exit, in any case.
[[noreturn]] void finish(const State& state) {
  while (::waitpid(-1, nullptr, WNOHANG) > 0) {  // what has ended already was not left over
  }
  const bool left_over = ::kill(-1, SIGKILL) == 0;
  while (::waitpid(-1, nullptr, 0) > 0 || errno == EINTR) {
  }
  rusage usage{};
  ::getrusage(RUSAGE_CHILDREN, &usage);
  auto milliseconds = [](const timeval& t) { return t.tv_sec * 1000 + t.tv_usec / 1000; };
  struct statvfs work {};
  std::uint64_t bytes = 0;
  std::uint64_t inodes = 0;
  if (state.plan->expected.work_bytes != 0 && ::statvfs("/workspace", &work) == 0) {
    bytes = (work.f_blocks - work.f_bfree) * work.f_frsize;
    inodes = work.f_files - work.f_ffree;
  }
  const auto cpu = static_cast<std::uint64_t>(milliseconds(usage.ru_utime) + milliseconds(usage.ru_stime));
  std::string text =
      fields(left_over ? "1" : "0", number(static_cast<std::uint64_t>(usage.ru_maxrss)), number(cpu));
  text = fields(text, number(bytes), number(inodes));
  send_text(plan::from_init::gone,
            fields(text, number(state.sampler.peak_bytes()), number(state.sampler.peak_pids())));
  ::_exit(0);
}

void terminate(State* state) {
  ::kill(-1, SIGTERM);
  ::kill(-1, SIGCONT);  // a stopped process takes TERM only when it goes on
  if (state->grace >= 0) return;
  if (state->plan->grace_ms == 0) finish(*state);
  state->grace = timer(state->plan->grace_ms);
}

[[noreturn]] void not_started(int report, int error) {
  ssize_t ignored = ::write(report, &error, sizeof error);
  (void)ignored;
  ::_exit(127);
}

// A working directory that the root does not hold would be a way out of it (CVE-2024-21626): getcwd(2) says
// "(unreachable)" in front of its path.
bool inside_root() {
  char path[4096];
  if (::syscall(SYS_getcwd, path, sizeof path) < 0) return false;
  errno = ENOTDIR;
  return path[0] == '/';
}

// proc_pid_oom_score_adj(5): when memory runs out, init must not be what the kernel chooses.
void prefer_for_oom() {
  const int fd = ::open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  if (fd < 0) return;
  const ssize_t ignored = ::write(fd, "500", 3);
  (void)ignored;
  ::close(fd);
}

// In the program's process. Descriptors: first all targets from their parking places, then everything else
// shut.
[[noreturn]] void execute(const plan::Plan& plan, int landlock, int report) {
  start_session(plan);
  prefer_for_oom();
  if (!enter_landlock(landlock)) not_started(report, errno);
  struct sigaction plain {};
  plain.sa_handler = SIG_DFL;
  for (int number = 1; number < 65; ++number) ::sigaction(number, &plain, nullptr);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  int highest = 2;
  const int parked = plan::kFirstExtraFd;
  for (std::size_t i = 0; i < plan.program_fds.size(); ++i) {
    int target = static_cast<int>(plan.program_fds[i]);
    if (target < 3 || target >= parked) ::_exit(127);
    ::dup2(parked + static_cast<int>(i), target);
    if (target > highest) highest = target;
  }
  const bool closing = has_layer(plan, plan::Layer::closed_fds);
  if (closing) {
    ::syscall(SYS_close_range, static_cast<unsigned>(highest) + 1U, ~0U, 4U /* CLOSE_RANGE_CLOEXEC */);
  }
  for (int fd = 3; closing && fd <= highest; ++fd) {
    bool wanted = false;
    for (std::uint64_t target : plan.program_fds) wanted = wanted || static_cast<int>(target) == fd;
    if (!wanted) ::close(fd);
  }
  if (::chdir(plan.cwd.c_str()) != 0 || !inside_root()) not_started(report, errno);
  std::vector<char*> argv = pointers(plan.argv);
  std::vector<char*> env = pointers(plan.env);
  ::execvpe(argv[0], argv.data(), env.data());
  not_started(report, errno);
}

void start_program(State* state) {
  int report[2];
  check(::pipe2(report, O_CLOEXEC) == 0, "pipe");
  // Out of the way of the targets, which are below the parking places.
  int writer = ::fcntl(report[1], F_DUPFD_CLOEXEC, 100);
  check(writer >= 0, "dup");
  ::close(report[1]);
  // execvpe(3) looks the program up in our own PATH: it has to be the box's.
  for (const std::string& entry : state->plan->env) {
    if (entry.rfind("PATH=", 0) == 0) ::setenv("PATH", entry.c_str() + 5, 1);
  }
  state->program = ::fork();
  check(state->program >= 0, "fork");
  if (state->program == 0) execute(*state->plan, state->landlock, writer);
  ::close(writer);
  int error = 0;
  ssize_t n = -1;
  do {
    n = ::read(report[0], &error, sizeof error);
  } while (n < 0 && errno == EINTR);
  ::close(report[0]);
  if (n == static_cast<ssize_t>(sizeof error)) {
    send_text(plan::from_init::not_started, number(static_cast<std::uint64_t>(error)));
    finish(*state);
  }
  send_text(plan::from_init::started, "");
  // The pipes have to end with the program: only our copies of its descriptors are closed here.
  for (int fd : {0, 1, 2}) ::close(fd);
  for (std::size_t i = 0; i < state->plan->program_fds.size(); ++i)
    ::close(plan::kFirstExtraFd + static_cast<int>(i));
}

void reap(State* state) {
  signalfd_siginfo info{};
  ssize_t ignored = ::read(state->signals, &info, sizeof info);
  (void)ignored;
  int status = 0;
  pid_t pid = -1;
  while ((pid = ::waitpid(-1, &status, WNOHANG)) > 0) {
    if (pid != state->program) continue;
    state->sampler.look_at_storage();  // what made it fail may not be there any more at the next look
    const bool signalled = WIFSIGNALED(status);
    const int value = signalled ? WTERMSIG(status) : WEXITSTATUS(status);
    send_text(plan::from_init::exited,
              fields(signalled ? "s" : "c", number(static_cast<std::uint64_t>(value))));
    finish(*state);
  }
}

[[noreturn]] void loop(State* state) {
  while (true) {
    pollfd entries[5] = {{plan::kControlFd, POLLIN, 0},
                         {state->signals, POLLIN, 0},
                         {state->deadline, POLLIN, 0},
                         {state->grace, POLLIN, 0},
                         {state->sampler.timer(), POLLIN, 0}};
    if (::poll(entries, 5, -1) < 0) continue;
    if (entries[3].revents != 0) finish(*state);
    if (entries[1].revents != 0) reap(state);
    if (entries[2].revents != 0) {
      ::close(state->deadline);
      state->deadline = -1;
      send_text(plan::from_init::deadline, "");
      terminate(state);
    }
    if (entries[0].revents != 0) {
      char order = receive();
      if (order == plan::to_init::terminate) terminate(state);
      if (order == plan::to_init::kill) finish(*state);
    }
    if (entries[4].revents != 0 && state->sampler.look()) terminate(state);
  }
}

}  // namespace

void supervise(const plan::Plan& plan, int landlock) {
  State state;
  state.plan = &plan;
  state.landlock = landlock;
  sigset_t child;
  ::sigemptyset(&child);
  ::sigaddset(&child, SIGCHLD);
  check(::sigprocmask(SIG_SETMASK, &child, nullptr) == 0, "sigprocmask");
  state.signals = ::signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
  check(state.signals >= 0, "signalfd");
  // Armed before go: a supervisor that never answers does not keep a box.
  state.deadline = timer(plan.deadline_ms);
  while (true) {
    pollfd entries[2] = {{plan::kControlFd, POLLIN, 0}, {state.deadline, POLLIN, 0}};
    if (::poll(entries, 2, -1) < 0) continue;
    if (entries[1].revents != 0) {
      send_text(plan::from_init::deadline, "");
      finish(state);
    }
    char order = receive();
    if (order == plan::to_init::go) break;
    finish(state);
  }
  start_program(&state);
  if (has_layer(plan, plan::Layer::watch)) state.sampler.start(plan);
  loop(&state);
}

}  // namespace cofferdam::init
