#include "init/network.h"

#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>

#include "init/protocol.h"
#include "init/sys.h"

namespace cofferdam::init {
namespace {

// netdevice(7). Needs CAP_NET_ADMIN in the network namespace, which is given up later.
void raise_loopback() {
  int fd = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  check(fd >= 0, "socket for lo");
  ifreq request{};
  std::strcpy(request.ifr_name, "lo");
  request.ifr_flags = IFF_UP | IFF_RUNNING;
  check(::ioctl(fd, SIOCSIFFLAGS, &request) == 0, "bring lo up");
  ::close(fd);
}

void hand_out(std::uint64_t port) {
  int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  check(fd >= 0, "socket for a listener");
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  check(::bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0, "bind a listener");  // NOLINT
  check(::listen(fd, 128) == 0, "listen");
  send_with_fd(plan::from_init::listener, number(port), fd);
  ::close(fd);
}

}  // namespace

void set_up_network(const std::vector<std::uint64_t>& ports) {
  raise_loopback();
  for (std::uint64_t port : ports) hand_out(port);
}

}  // namespace cofferdam::init
