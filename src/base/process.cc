#include "base/process.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <grp.h>
#include <linux/sched.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/io.h"

namespace cofferdam {
namespace {

using Clock = std::chrono::steady_clock;

// Everything the child needs, laid out before the fork.
struct Prepared {
  const SpawnOptions* options = nullptr;
  std::vector<char*> argv;
  std::vector<char*> env;
  std::vector<FdMapping> fds;  // sources moved above every target
  std::vector<UniqueFd> owned;
  int program = -1;
  int report = -1;
  bool in_group = false;  // from the beginning
  pid_t parent = -1;
};

struct ChildFailure {
  int step;
  int error;
};

const char* step_name(int step) {
  switch (step) {
    case 1:
      return "prctl";
    case 2:
      return "set groups";
    case 3:
      return "set gid";
    case 4:
      return "set uid";
    case 5:
      return "chdir";
    case 6:
      return "dup2";
    case 8:
      return "enter a control group";
    default:
      return "execve";
  }
}

[[noreturn]] void fail(int report, int step) {
  ChildFailure failure{step, errno};
  ssize_t ignored = ::write(report, &failure, sizeof failure);
  (void)ignored;
  ::_exit(127);
}

void reset_signals() {
  struct sigaction action {};
  action.sa_handler = SIG_DFL;
  for (int number = 1; number < 65; ++number) ::sigaction(number, &action, nullptr);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

// Raw system calls only: the parent may have threads, and glibc's setuid family would signal them.
[[noreturn]] void child_main(const Prepared& prepared) {
  const SpawnOptions& options = *prepared.options;
  reset_signals();
  for (const int group : options.join_fds) {
    if (prepared.in_group) break;
    if (::write(group, "0", 1) != 1) fail(prepared.report, 8);
  }
  if (options.new_session) ::setsid();
  if (options.run_as.has_value()) {
    if (::syscall(SYS_setgroups, 0, nullptr) != 0) fail(prepared.report, 2);
    gid_t gid = options.run_as->gid;
    uid_t uid = options.run_as->uid;
    if (::syscall(SYS_setresgid, gid, gid, gid) != 0) fail(prepared.report, 3);
    if (::syscall(SYS_setresuid, uid, uid, uid) != 0) fail(prepared.report, 4);
  }
  // After the change of user: the kernel clears the death signal on it (PR_SET_PDEATHSIG(2const)).
  if (options.die_with_parent) {
    if (::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) fail(prepared.report, 1);
    if (::getppid() != prepared.parent) ::_exit(127);
  }
  if (::chdir(options.cwd.c_str()) != 0) fail(prepared.report, 5);
  int highest = prepared.report;
  for (const FdMapping& map : prepared.fds) {
    if (::dup2(map.source, map.target) < 0) fail(prepared.report, 6);
    highest = std::max(highest, map.target);
  }
  // Close-on-exec for everything but the targets: sources are close-on-exec already, so only descriptors
  // that somebody else leaked into us are left. close_range(2).
  ::syscall(SYS_close_range, static_cast<unsigned>(highest) + 1U, ~0U, 4U /* CLOSE_RANGE_CLOEXEC */);
  for (int fd = 3; fd <= highest; ++fd) {
    bool mapped = false;
    for (const FdMapping& map : prepared.fds) mapped = mapped || map.target == fd;
    if (!mapped) ::fcntl(fd, F_SETFD, FD_CLOEXEC);
  }
  if (prepared.program >= 0) {
    ::syscall(SYS_execveat, prepared.program, "", prepared.argv.data(), prepared.env.data(), AT_EMPTY_PATH);
  } else {
    ::execve(options.program.c_str(), prepared.argv.data(), prepared.env.data());
  }
  fail(prepared.report, 7);
}

// Moves every source above all targets, so that dup2 in the child never overwrites a source still needed.
Status prepare_fds(const SpawnOptions& options, int devnull, Prepared* prepared, int* report) {
  int floor = 2;
  for (const FdMapping& map : options.fds) floor = std::max(floor, map.target);
  auto lift = [&](int fd) -> Result<int> {
    UniqueFd copy(::fcntl(fd, F_DUPFD_CLOEXEC, floor + 1));
    if (!copy.valid()) return sys_error("cannot duplicate a descriptor", errno);
    prepared->owned.push_back(std::move(copy));
    return prepared->owned.back().get();
  };
  for (int standard = 0; standard < 3; ++standard) {
    bool named = std::any_of(options.fds.begin(), options.fds.end(),
                             [&](const FdMapping& map) { return map.target == standard; });
    if (named) continue;
    TRY(int source, lift(devnull));
    prepared->fds.push_back({source, standard});
  }
  for (const FdMapping& map : options.fds) {
    TRY(int source, lift(map.source));
    prepared->fds.push_back({source, map.target});
  }
  if (options.program_fd >= 0) {
    TRY(prepared->program, lift(options.program_fd));
  }
  TRY(*report, lift(*report));
  return {};
}

std::vector<char*> pointers(const std::vector<std::string>& strings) {
  std::vector<char*> out;
  out.reserve(strings.size() + 1);
  for (const std::string& s : strings) out.push_back(const_cast<char*>(s.c_str()));  // NOLINT
  out.push_back(nullptr);
  return out;
}

// Into the group at once. To move there by cgroup.procs takes a lock that stops every fork and exit of the
// host (cgroup_threadgroup_rwsem), for which the kernel waits 10 to 20 ms where nobody has just done the
// same. What fork(3) does beside the call is for children that go on; ours executes.
pid_t fork_into(int group) {
  clone_args how{};
  how.flags = CLONE_INTO_CGROUP;
  how.exit_signal = SIGCHLD;
  how.cgroup = static_cast<__u64>(group);
  return static_cast<pid_t>(::syscall(SYS_clone3, &how, sizeof how));
}

pid_t fork_child(Prepared* prepared) {
  if (prepared->options->group_fd < 0) return ::fork();
  prepared->in_group = true;  // as the child will see it
  const pid_t pid = fork_into(prepared->options->group_fd);
  if (pid >= 0) return pid;
  prepared->in_group = false;
  return ::fork();  // older than Linux 5.7, or a filter refuses clone3: the child goes there itself
}

}  // namespace

std::string ExitStatus::describe() const {
  if (signal.has_value()) return fmt::format("signal {}", *signal);
  return fmt::format("exit code {}", code.value_or(-1));
}

Child& Child::operator=(Child&& other) noexcept {
  if (this != &other) {
    end();
    pid_ = std::exchange(other.pid_, -1);
    pidfd_ = std::move(other.pidfd_);
  }
  return *this;
}

void Child::signal(int number) const {
  if (pid_ > 0) ::syscall(SYS_pidfd_send_signal, pidfd_.get(), number, nullptr, 0);
}

Result<ExitStatus> Child::wait(std::chrono::milliseconds limit) {
  TRY(bool ended, wait_readable(pidfd_.get(), static_cast<int>(limit.count())));
  if (!ended) return make_error(Code::timeout, "a child process has not ended in time");
  return wait();
}

Result<ExitStatus> Child::wait() {
  if (pid_ <= 0) return make_error(Code::internal, "wait for a child that is not running");
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0) {
    if (errno != EINTR) return sys_error("cannot wait for a child process", errno);
  }
  pid_ = -1;
  pidfd_.reset();
  ExitStatus out;
  if (WIFSIGNALED(status)) {
    out.signal = WTERMSIG(status);
  } else {
    out.code = WEXITSTATUS(status);
  }
  return out;
}

void Child::end() {
  if (pid_ <= 0) return;
  signal(SIGKILL);
  auto ignored = wait();
  (void)ignored.has_value();
}

Result<Child> spawn(const SpawnOptions& options) {
  Prepared prepared;
  prepared.options = &options;
  prepared.argv = pointers(options.argv);
  prepared.env = pointers(options.env);
  prepared.parent = ::getpid();
  TRY(UniqueFd devnull, open_file("/dev/null", O_RDWR));
  TRY(Pipe report, make_pipe());
  int report_fd = report.write.get();
  TRY_VOID(prepare_fds(options, devnull.get(), &prepared, &report_fd));
  prepared.report = report_fd;
  report.write.reset();

  pid_t pid = fork_child(&prepared);
  if (pid < 0) return sys_error("cannot start a process", errno);
  if (pid == 0) child_main(prepared);
  prepared.owned.clear();  // drops our copy of the report pipe: end of file now means "exec happened"

  UniqueFd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  Child child(pid, std::move(pidfd));
  if (child.pidfd() < 0) return sys_error("pidfd_open", errno);
  ChildFailure failure{};
  ssize_t n = -1;
  do {
    n = ::read(report.read.get(), &failure, sizeof failure);
  } while (n < 0 && errno == EINTR);
  if (n == static_cast<ssize_t>(sizeof failure)) {
    Error error = sys_error(fmt::format("cannot start {} ({})", options.program, step_name(failure.step)),
                            failure.error);
    if (failure.step == 7 && failure.error == ENOENT) error.code = Code::missing_tool;
    return error;
  }
  return child;
}

namespace {

// The state of one run_capture(): which pipes are still open and what came through them.
struct Capture {
  UniqueFd in;
  UniqueFd out;
  UniqueFd err;
  std::string_view input;
  Captured result;
};

Status feed(Capture* capture) {
  ssize_t n = ::write(capture->in.get(), capture->input.data(), capture->input.size());
  if (n < 0 && errno != EAGAIN && errno != EINTR && errno != EPIPE)
    return sys_error("cannot feed a child", errno);
  if (n > 0) capture->input.remove_prefix(static_cast<std::size_t>(n));
  if (capture->input.empty() || (n < 0 && errno == EPIPE)) capture->in.reset();
  return {};
}

Status drain(UniqueFd* fd, std::string* into, std::size_t keep, bool drop_rest) {
  bool would_block = false;
  TRY(std::string bytes, read_some(fd->get(), 65536, &would_block));
  if (would_block) return {};
  if (bytes.empty()) {
    fd->reset();
    return {};
  }
  if (into->size() + bytes.size() > keep) {
    if (!drop_rest) return make_error(Code::exhausted, fmt::format("output of more than {} bytes", keep));
    bytes.resize(keep - std::min(keep, into->size()));
  }
  into->append(bytes);
  return {};
}

Status pump(Capture* capture, const CaptureLimits& limits) {
  const auto end = Clock::now() + limits.time;
  while (capture->in.valid() || capture->out.valid() || capture->err.valid()) {
    auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now()).count();
    if (left <= 0) return make_error(Code::timeout, "a helper process did not end in time");
    pollfd entries[4] = {{capture->in.get(), POLLOUT, 0},
                         {capture->out.get(), POLLIN, 0},
                         {capture->err.get(), POLLIN, 0},
                         {limits.stop_fd, POLLIN, 0}};
    int n = ::poll(entries, 4, static_cast<int>(std::min<long>(left, 60000)));
    if (n < 0 && errno != EINTR) return sys_error("poll", errno);
    if (n <= 0) continue;
    if (entries[3].revents != 0) return make_error(Code::conflict, "broken off");
    if (entries[0].revents != 0) TRY_VOID(feed(capture));
    if (entries[1].revents != 0)
      TRY_VOID(drain(&capture->out, &capture->result.out, limits.out_bytes, false));
    if (entries[2].revents != 0) TRY_VOID(drain(&capture->err, &capture->result.err, 65536, true));
  }
  return {};
}

}  // namespace

Result<Captured> run_capture(SpawnOptions options, std::string_view input, const CaptureLimits& limits) {
  TRY(Pipe in, make_pipe());
  TRY(Pipe out, make_pipe());
  TRY(Pipe err, make_pipe());
  options.fds.push_back({in.read.get(), 0});
  options.fds.push_back({out.write.get(), 1});
  options.fds.push_back({err.write.get(), 2});
  TRY(Child child, spawn(options));
  in.read.reset();
  out.write.reset();
  err.write.reset();
  for (int fd : {in.write.get(), out.read.get(), err.read.get()}) TRY_VOID(set_nonblocking(fd, true));
  Capture capture{std::move(in.write), std::move(out.read), std::move(err.read), input, {}};
  if (input.empty()) capture.in.reset();
  TRY_VOID(pump(&capture, limits));
  TRY(capture.result.status, child.wait(limits.time));
  return std::move(capture.result);
}

}  // namespace cofferdam
