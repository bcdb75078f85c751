// Sockets and terminals. Nothing is sent but to listeners of the gate's own, and no address is asked for but
// in the routing table.
#include <arpa/inet.h>
#include <fcntl.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>

#include "probe/acts.h"

namespace cofferdam::probe {
namespace {

Outcome make_socket(const Args& args) {
  return outcome(::socket(static_cast<int>(number(args, 0)), static_cast<int>(number(args, 1)) | SOCK_CLOEXEC,
                          static_cast<int>(number(args, 2))));
}

Outcome connect_to(int family, int type, const void* address, socklen_t size) {
  const int fd = ::socket(family, type | SOCK_CLOEXEC, 0);
  if (fd < 0) return failed("socket");
  return outcome(::connect(fd, static_cast<const sockaddr*>(address), size));
}

Outcome unix_path(const Args& args, int type) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string path = argument(args, 0);
  if (path.size() >= sizeof address.sun_path) return failed("the path is too long");
  std::memcpy(address.sun_path, path.data(), path.size());
  return connect_to(AF_UNIX, type, &address, sizeof address);
}

Outcome connect_stream(const Args& args) {
  return unix_path(args, SOCK_STREAM);
}
Outcome connect_datagram(const Args& args) {
  return unix_path(args, SOCK_DGRAM);
}

Outcome connect_abstract(const Args& args) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string name = argument(args, 0);
  if (name.size() + 1 >= sizeof address.sun_path) return failed("the name is too long");
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  return connect_to(AF_UNIX, SOCK_STREAM, &address, size);
}

sockaddr_in loopback(long port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

Outcome connect_loopback(const Args& args) {
  const sockaddr_in address = loopback(number(args, 0));
  return connect_to(AF_INET, SOCK_STREAM, &address, sizeof address);
}

// connect(2) of a datagram socket only looks the route up: nothing is sent.
Outcome route_v4(const Args& args) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(9);
  if (::inet_pton(AF_INET, argument(args, 0).c_str(), &address.sin_addr) != 1) return failed("address");
  return connect_to(AF_INET, SOCK_DGRAM, &address, sizeof address);
}
Outcome route_v6(const Args& args) {
  sockaddr_in6 address{};
  address.sin6_family = AF_INET6;
  address.sin6_port = htons(9);
  if (::inet_pton(AF_INET6, argument(args, 0).c_str(), &address.sin6_addr) != 1) return failed("address");
  return connect_to(AF_INET6, SOCK_DGRAM, &address, sizeof address);
}

// A server of the box's own, as test suites have it.
Outcome serve_loopback(const Args&) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const sockaddr_in address = loopback(0);
  if (fd < 0) return denied_by(errno);
  if (::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)  // NOLINT
    return denied_by(errno);
  return outcome(::listen(fd, 1));
}

// The flags that lo has, once more: netdevice(7).
Outcome configure_lo(const Args&) {
  const int fd = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  ifreq request{};
  std::strcpy(request.ifr_name, "lo");
  if (fd < 0 || ::ioctl(fd, SIOCGIFFLAGS, &request) != 0) return failed("SIOCGIFFLAGS");
  return outcome(::ioctl(fd, SIOCSIFFLAGS, &request));
}

// REQUEST HIGH: to a terminal of our own, the controlling one of a session of our own. HIGH stands in the
// half of the request that the kernel does not read.
Outcome terminal_request(const Args& args) {
  ::setsid();
  const int master = ::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
  char name[64];
  if (master < 0 || ::unlockpt(master) != 0 || ::ptsname_r(master, name, sizeof name) != 0)
    return failed("a terminal of our own");
  const int terminal = ::open(name, O_RDWR | O_CLOEXEC);
  if (terminal < 0) return failed("a terminal of our own");
  char space[64] = "x";
  return outcome(::syscall(SYS_ioctl, terminal, number(args, 0) | (number(args, 1) << 32), space));
}

Outcome open_terminal(const Args&) {
  return outcome(::open("/dev/tty", O_RDWR | O_CLOEXEC));
}

// Into the terminal that the caller is at.
Outcome type_ahead(const Args&) {
  const int terminal = ::open("/dev/tty", O_RDWR | O_CLOEXEC);
  if (terminal < 0) return denied_by(errno);
  return outcome(::ioctl(terminal, TIOCSTI, " "));
}

}  // namespace

std::vector<Act> socket_acts() {
  return {{"socket", make_socket},
          {"connect-stream", connect_stream},
          {"connect-datagram", connect_datagram},
          {"connect-abstract", connect_abstract},
          {"connect-loopback", connect_loopback},
          {"route-v4", route_v4},
          {"route-v6", route_v6},
          {"serve-loopback", serve_loopback},
          {"configure-lo", configure_lo},
          {"terminal-request", terminal_request},
          {"open-terminal", open_terminal},
          {"type-ahead", type_ahead}};
}

}  // namespace cofferdam::probe
