// Sockets and terminals.
#include <fcntl.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstdio>
#include <cstring>

#include "acts.h"

namespace box_probe {
namespace {

int make_socket(const Args& args) {
  return outcome(::socket(static_cast<int>(number(args, 0)), static_cast<int>(number(args, 1)),
                          static_cast<int>(number(args, 2))));
}

int make_pair(const Args& args) {
  int ends[2];
  return outcome(::socketpair(static_cast<int>(number(args, 0)), static_cast<int>(number(args, 1)), 0, ends));
}

socklen_t abstract_address(const std::string& name, sockaddr_un* address) {
  address->sun_family = AF_UNIX;
  std::memcpy(address->sun_path + 1, name.data(), name.size());
  return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
}

int connect_path(const Args& args) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  argument(args, 0).copy(address.sun_path, sizeof address.sun_path - 1);
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return errno;
  return outcome(::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address));  // NOLINT
}

int connect_abstract(const Args& args) {
  sockaddr_un address{};
  const socklen_t size = abstract_address(argument(args, 0), &address);
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return errno;
  return outcome(::connect(fd, reinterpret_cast<sockaddr*>(&address), size));  // NOLINT
}

// Leaves traces that another box must not see, and stays until its input ends.
int hold(const Args& args) {
  const std::string name = argument(args, 0);
  for (const std::string& path : {"/workspace/" + name, "/tmp/" + name}) {
    const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0) return errno;
    ::close(fd);
  }
  sockaddr_un address{};
  const socklen_t size = abstract_address(name, &address);
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (::bind(fd, reinterpret_cast<sockaddr*>(&address), size) != 0 || ::listen(fd, 4) != 0)  // NOLINT
    return errno;
  std::printf("holding\n");
  char byte = 0;
  while (::read(0, &byte, 1) > 0) {
  }
  return 0;
}

// A request to a terminal of our own. `high` is what stands in the half that the kernel does not read.
int terminal_request(const Args& args) {
  const int master = ::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
  if (master < 0 || ::unlockpt(master) != 0) return errno;
  char name[64];
  if (::ptsname_r(master, name, sizeof name) != 0) return errno;
  const int terminal =
      ::open(name, O_RDWR | O_CLOEXEC);  // a session leader's controlling terminal from now on
  if (terminal < 0) return errno;
  char space[64] = "x";
  const long request = number(args, 0) | (number(args, 1) << 32);
  return outcome(::syscall(SYS_ioctl, terminal, request, space));
}

}  // namespace

std::vector<Act> socket_acts() {
  return {{"socket", make_socket},
          {"socketpair", make_pair},
          {"connect-abstract", connect_abstract},
          {"connect-path", connect_path},
          {"hold", hold},
          {"terminal", terminal_request}};
}

}  // namespace box_probe
