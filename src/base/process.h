// The only place in Cofferdam (outside cofferdam-init) that starts a process.
//
// Thread rules: spawn() may be called from a threaded process: between fork and exec the child makes only
// async-signal-safe calls (signal-safety(7)) on memory prepared before the fork.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "base/result.h"

namespace cofferdam {

// As the kernel gave it: exactly one of the two is set.
struct ExitStatus {
  std::optional<int> code;
  std::optional<int> signal;
  bool success() const { return code.has_value() && *code == 0; }
  std::string describe() const;  // "exit code 3", "signal 9"
};

struct UserIds {
  uid_t uid = 0;
  gid_t gid = 0;
};

struct FdMapping {
  int source = -1;  // borrowed until spawn() returns
  int target = -1;  // number in the child
};

struct SpawnOptions {
  std::string program;  // absolute path; for messages only when program_fd is given
  int program_fd = -1;  // an open executable (execveat(2)): usable where `run_as` may not walk to its path
  std::vector<std::string> argv;  // argv[0] included
  std::vector<std::string> env;   // "NAME=value"; nothing is inherited
  std::vector<FdMapping> fds;     // 0, 1 and 2 are /dev/null when not named; everything else is closed
  std::optional<UserIds> run_as;  // needs root; supplementary groups are dropped first
  // Borrowed. Before anything else the child writes "0" to each: cgroup.procs or, as it has one thread, tasks
  // of a control group, which the child is then in, cgroups(7).
  std::vector<int> join_fds;
  // Borrowed; the folder of a control group of version 2 in which the child is made (CLONE_INTO_CGROUP,
  // clone(2)). Where that cannot be done, join_fds are taken; otherwise they are not.
  int group_fd = -1;
  std::string cwd = "/";
  bool new_session = true;      // setsid(2): no controlling terminal
  bool die_with_parent = true;  // PR_SET_PDEATHSIG: SIGKILL when the spawning thread ends
};

// Owns one child: the destructor kills it and waits for it. Move-only.
class Child {
 public:
  Child() = default;
  Child(pid_t pid, UniqueFd pidfd) : pid_(pid), pidfd_(std::move(pidfd)) {}
  Child(Child&& other) noexcept : pid_(std::exchange(other.pid_, -1)), pidfd_(std::move(other.pidfd_)) {}
  Child& operator=(Child&& other) noexcept;
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() { end(); }

  bool running() const { return pid_ > 0; }
  pid_t pid() const { return pid_; }
  int pidfd() const { return pidfd_.get(); }  // readable (poll) once the child has ended: pidfd_open(2)
  void signal(int number) const;
  // Gives it up: it is neither killed nor waited for any more.
  void detach() {
    pid_ = -1;
    pidfd_.reset();
  }
  // Waits at most `limit`; Code::timeout leaves the child running.
  Result<ExitStatus> wait(std::chrono::milliseconds limit);
  Result<ExitStatus> wait();

 private:
  void end();
  pid_t pid_ = -1;
  UniqueFd pidfd_;
};

// Code::missing_tool when the program does not exist.
Result<Child> spawn(const SpawnOptions& options);

struct Captured {
  ExitStatus status;
  std::string out;
  std::string err;  // at most 64 KiB, the rest is dropped
};
struct CaptureLimits {
  std::size_t out_bytes = 64U << 20U;  // more is Code::exhausted and the child is killed
  std::chrono::milliseconds time = std::chrono::minutes(10);
  int stop_fd = -1;  // readable, or at its end: Code::conflict, and the child is killed. Borrowed
};
// The caller has SIGPIPE ignored, as every program of ours has: a child need not read its input.
// Runs to the end, feeding `input` and collecting output. options.fds must not map 0, 1 or 2.
Result<Captured> run_capture(SpawnOptions options, std::string_view input, const CaptureLimits& limits);

}  // namespace cofferdam
