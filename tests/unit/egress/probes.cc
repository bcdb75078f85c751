#include "unit/egress/probes.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>

namespace cofferdam::egress::testing {
namespace {

// 0, or the errno.
int outcome(long value) {
  return value < 0 ? errno : 0;
}

int socket_of(int family, int type, int protocol) {
  int fd = ::socket(family, type, protocol);
  int result = outcome(fd);
  if (fd >= 0) ::close(fd);
  return result;
}

// A listener of the probe's own cannot be had inside, so a refused connection is the proof of an open way.
int connect_to(std::uint16_t port) {
  int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return errno;
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = ::htonl(INADDR_LOOPBACK);
  address.sin_port = ::htons(port);
  const void* raw = &address;
  int result = outcome(::connect(fd, static_cast<const sockaddr*>(raw), sizeof address));
  ::close(fd);
  return result == ECONNREFUSED ? 0 : result;
}

// The way past connect(2): tcp(7), MSG_FASTOPEN.
int fast_open_to(std::uint16_t port, bool by_message) {
  int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return errno;
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = ::htonl(INADDR_LOOPBACK);
  address.sin_port = ::htons(port);
  void* raw = &address;
  char byte = 'x';
  iovec piece{&byte, 1};
  msghdr message{};
  message.msg_name = raw;
  message.msg_namelen = sizeof address;
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  const int flags = MSG_FASTOPEN | MSG_NOSIGNAL;
  long sent = by_message ? ::sendmsg(fd, &message, flags)
                         : ::sendto(fd, &byte, 1, flags, static_cast<sockaddr*>(raw), sizeof address);
  int result = outcome(sent);
  ::close(fd);
  return result == ECONNREFUSED ? 0 : result;
}

int execute() {
  const char* argv[] = {"/bin/true", nullptr};
  ::execve("/bin/true", const_cast<char* const*>(argv), nullptr);  // NOLINT
  return errno;
}

int fork_once() {
  long pid = ::syscall(SYS_fork);
  if (pid == 0) ::_exit(0);
  return outcome(pid);
}

int clone_once() {
  long pid = ::syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
  if (pid == 0) ::_exit(0);
  return outcome(pid);
}

int map_executable() {
  void* memory =
      ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return memory == MAP_FAILED ? errno : 0;
}

const std::map<std::string, std::function<int()>>& probes() {
  static const std::map<std::string, std::function<int()>> table = {
      {"open-read", [] { return outcome(::open("/etc/passwd", O_RDONLY | O_CLOEXEC)); }},
      {"open-self", [] { return outcome(::open("/proc/self/environ", O_RDONLY | O_CLOEXEC)); }},
      {"create", [] { return outcome(::open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600)); }},
      {"stat", [] { return outcome(::access("/etc/passwd", F_OK)); }},
      {"unix", [] { return socket_of(AF_UNIX, SOCK_STREAM, 0); }},
      {"netlink", [] { return socket_of(AF_NETLINK, SOCK_RAW, 0); }},
      {"udp", [] { return socket_of(AF_INET, SOCK_DGRAM, 0); }},
      {"tcp", [] { return socket_of(AF_INET6, SOCK_STREAM | SOCK_NONBLOCK, IPPROTO_TCP); }},
      {"other-port", [] { return connect_to(1); }},
      {"fast-open", [] { return fast_open_to(1, false); }},
      {"fast-open-message", [] { return fast_open_to(1, true); }},
      {"clone", clone_once},
      {"executable-memory", map_executable},
      {"memfd", [] { return outcome(::memfd_create("x", MFD_CLOEXEC)); }},
      {"kill", [] { return outcome(::kill(::getppid(), 0)); }},
      {"dumpable", [] { return outcome(::prctl(PR_SET_DUMPABLE, 1, 0, 0, 0)); }},
      {"exec", execute},
      {"fork", fork_once},
      {"ptrace", [] { return outcome(::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr)); }},
  };
  return table;
}

}  // namespace

GatewayHooks hooks_for(const std::string& program) {
  const std::string name = program.substr(program.rfind('/') + 1);
  const bool inside = name.rfind("probe-", 0) == 0;
  const bool control = name.rfind("control-", 0) == 0;
  if (!inside && !control) return {};
  auto found = probes().find(name.substr(name.find('-') + 1));
  if (found == probes().end()) return {};
  auto run = [&probe = found->second]() -> Status {
    int error = probe();
    return make_error(Code::internal,
                      error == 0 ? "probe: possible" : std::string("probe: ") + ::strerrorname_np(error));
  };
  return inside ? GatewayHooks{{}, run} : GatewayHooks{run, {}};
}

}  // namespace cofferdam::egress::testing
