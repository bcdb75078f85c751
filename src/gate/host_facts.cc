#include "gate/host_facts.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/file.h"
#include "base/text.h"

namespace cofferdam::gate {
namespace {

// A setting that older kernels do not have is as the older kernels behave.
std::string setting(const std::string& path, const char* otherwise) {
  auto text = read_file(path, 64);
  return text ? std::string(trim(*text)) : otherwise;
}

// connect(2) of a datagram socket only looks the route up: nothing is sent.
bool has_route(int family, const void* address, socklen_t size) {
  const UniqueFd fd(::socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  return fd.valid() && ::connect(fd.get(), static_cast<const sockaddr*>(address), size) == 0;
}

bool has_route_v4() {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(9);
  ::inet_pton(AF_INET, "192.0.2.1", &address.sin_addr);  // RFC 5737
  return has_route(AF_INET, &address, sizeof address);
}

bool has_route_v6() {
  sockaddr_in6 address{};
  address.sin6_family = AF_INET6;
  address.sin6_port = htons(9);
  ::inet_pton(AF_INET6, "2001:db8::1", &address.sin6_addr);  // RFC 3849
  return has_route(AF_INET6, &address, sizeof address);
}

bool hard_limit_above(__rlimit_resource resource, rlim_t bound) {
  rlimit limit{};
  return ::getrlimit(resource, &limit) == 0 && limit.rlim_max > bound;
}

}  // namespace

HostFacts read_host_facts() {
  HostFacts facts;
  facts.root = ::geteuid() == 0;
  facts.tracing = setting("/proc/sys/kernel/yama/ptrace_scope", "0") == "0";
  facts.terminal = setting("/proc/sys/dev/tty/legacy_tiocsti", "1") == "1";
  facts.route_v4 = has_route_v4();
  facts.route_v6 = has_route_v6();
  // The bounds of a box: init/restrict.cc.
  facts.core_limit = hard_limit_above(RLIMIT_CORE, 0);
  facts.file_limit = hard_limit_above(RLIMIT_NOFILE, 4096);
  // landlock_create_ruleset(2): LANDLOCK_CREATE_RULESET_VERSION.
  const long abi = ::syscall(SYS_landlock_create_ruleset, nullptr, 0, 1);
  facts.landlock = abi >= 2;
  facts.landlock_scope = abi >= 6;
  facts.memlock_limit = hard_limit_above(RLIMIT_MEMLOCK, 8U << 20U);
  return facts;
}

std::string unmet(Need need, const HostFacts& facts) {
  switch (need) {
    case Need::nothing:
      return "";
    case Need::root:
      return facts.root ? "" : "only root could give the host's uid 0 to a box";
    case Need::tracing:
      return facts.tracing ? "" : "Yama refuses it to everybody (kernel.yama.ptrace_scope)";
    case Need::terminal:
      return facts.terminal ? "" : "this kernel refuses it to everybody (dev.tty.legacy_tiocsti is 0)";
    case Need::route_v4:
      return facts.route_v4 ? "" : "this host has no IPv4 route itself";
    case Need::route_v6:
      return facts.route_v6 ? "" : "this host has no IPv6 route itself";
    case Need::route:
      return facts.route_v4 || facts.route_v6 ? "" : "this host has no route itself";
    case Need::core_limit:
      return facts.core_limit ? "" : "the caller's own hard limit is not above a box's (ulimit -Hc)";
    case Need::file_limit:
      return facts.file_limit ? "" : "the caller's own hard limit is not above a box's (ulimit -Hn)";
    case Need::memlock_limit:
      return facts.memlock_limit ? "" : "the caller's own hard limit is not above a box's (ulimit -Hl)";
    case Need::groups:
      return facts.groups ? "" : "boxes have no control groups here (sudo cofferdam host-setup)";
    case Need::landlock_scope:
      return facts.landlock_scope ? "" : "this kernel's Landlock knows no signals and abstract sockets";
  }
  return "";
}

}  // namespace cofferdam::gate
