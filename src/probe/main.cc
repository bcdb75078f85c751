// cofferdam-probe ACT...: every argument is one act with its own arguments, separated by blanks. Each runs in
// a process of its own, bounded in time, one after the other. One line per act on standard output:
//   NUMBER allowed|denied|unavailable|error DETAIL
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

#include "probe/acts.h"

namespace cofferdam::probe {

Outcome denied_by(int error) {
  const char* name = ::strerrorname_np(error);
  return {Outcome::Kind::denied, name == nullptr ? std::to_string(error) : name};
}

Outcome outcome(long result) {
  return result >= 0 ? Outcome{Outcome::Kind::allowed, "it worked"} : denied_by(errno);
}

Outcome allowed_if(bool yes, const char* otherwise) {
  return yes ? Outcome{Outcome::Kind::allowed, "it worked"} : Outcome{Outcome::Kind::denied, otherwise};
}

std::string slurp(const std::string& path, std::size_t max) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return {};
  std::string out(max, '\0');
  std::size_t size = 0;
  while (size < max) {
    const ssize_t n = ::read(fd, out.data() + size, max - size);
    if (n <= 0) break;
    size += static_cast<std::size_t>(n);
  }
  ::close(fd);
  out.resize(size);
  return out;
}

namespace {

constexpr int kActBoundMs = 10'000;
constexpr std::size_t kMaxLine = 200;

const char* kind_name(Outcome::Kind kind) {
  switch (kind) {
    case Outcome::Kind::allowed:
      return "allowed";
    case Outcome::Kind::denied:
      return "denied";
    case Outcome::Kind::unavailable:
      return "unavailable";
    case Outcome::Kind::error:
      break;
  }
  return "error";
}

Args words(const std::string& text) {
  Args out;
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    if (end > at) out.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return out;
}

Outcome run_act(const std::string& spec) {
  Args args = words(spec);
  if (args.empty()) return failed("no act");
  const std::string name = args.front();
  args.erase(args.begin());
  for (const std::vector<Act>& table :
       {state_acts(), file_acts(), mount_acts(), process_acts(), filter_acts(), socket_acts()}) {
    for (const Act& act : table) {
      if (name == act.name) return act.run(args);
    }
  }
  return failed("unknown act");
}

[[noreturn]] void child(const std::string& spec, int report) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  const Outcome found = run_act(spec);
  const std::string line =
      std::string(kind_name(found.kind)) + " " + found.detail.substr(0, kMaxLine - 20) + "\n";
  const ssize_t ignored = ::write(report, line.data(), line.size());
  (void)ignored;
  ::_exit(0);
}

// Until the line is whole, the end of the pipe, or the bound; processes of the act may hold the pipe open.
std::string read_line(int fd) {
  std::string line;
  pollfd entry{fd, POLLIN, 0};
  while (line.size() < kMaxLine && line.find('\n') == std::string::npos) {
    const int ready = ::poll(&entry, 1, kActBoundMs);
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return "error it took too long\n";
    char buffer[kMaxLine];
    const ssize_t n = ::read(fd, buffer, kMaxLine - line.size());
    if (n <= 0) break;
    line.append(buffer, static_cast<std::size_t>(n));
  }
  return line;
}

std::string supervise(const std::string& spec) {
  int report[2];
  if (::pipe2(report, O_CLOEXEC) != 0) return "error pipe\n";
  const pid_t pid = ::fork();
  if (pid < 0) return "error fork\n";
  if (pid == 0) child(spec, report[1]);
  ::close(report[1]);
  std::string line = read_line(report[0]);
  ::close(report[0]);
  if (!line.empty()) ::kill(pid, SIGKILL);
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (!line.empty()) return line;
  // What the kernel ends for a call is denied it: seccomp(2), SECCOMP_RET_KILL_PROCESS.
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS) return "denied SIGSYS\n";
  return "error the act ended without an answer\n";
}

}  // namespace
}  // namespace cofferdam::probe

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fputs("cofferdam-probe: an internal program of cofferdam; run 'cofferdam gate' instead\n", stderr);
    return 2;
  }
  for (int i = 1; i < argc; ++i) {
    const std::string line = std::to_string(i - 1) + " " + cofferdam::probe::supervise(argv[i]);
    const ssize_t ignored = ::write(1, line.data(), line.size());
    (void)ignored;
  }
  return 0;
}
