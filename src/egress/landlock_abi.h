// Landlock's numbers (landlock(7), include/uapi/linux/landlock.h), because the header of the oldest supported
// distribution ends at ABI 2 and the running kernel decides what is used.
#pragma once

#include <cstdint>

namespace cofferdam::egress::landlock {

inline constexpr std::uint32_t kCreateVersion = 1;  // LANDLOCK_CREATE_RULESET_VERSION
inline constexpr int kRuleNetPort = 2;              // LANDLOCK_RULE_NET_PORT
inline constexpr std::uint64_t kNetConnectTcp = 2;  // LANDLOCK_ACCESS_NET_CONNECT_TCP

// struct landlock_ruleset_attr; older kernels take a prefix of it.
struct RulesetAttr {
  std::uint64_t handled_access_fs = 0;
  std::uint64_t handled_access_net = 0;  // since ABI 4
  std::uint64_t scoped = 0;              // since ABI 6
};
struct NetPortAttr {
  std::uint64_t allowed_access = 0;
  std::uint64_t port = 0;
};

// Every file right that a version knows: execute to make_sym (13 bits), refer, truncate, ioctl_dev.
constexpr std::uint64_t all_file_rights(int abi) {
  const unsigned bits = abi >= 5 ? 16U : abi >= 3 ? 15U : abi >= 2 ? 14U : 13U;
  return (1ULL << bits) - 1U;
}
constexpr std::uint64_t all_net_rights(int abi) {
  return abi >= 4 ? 3U : 0U;  // bind and connect, TCP
}
constexpr std::uint64_t all_scopes(int abi) {
  return abi >= 6 ? 3U : 0U;  // abstract unix sockets, signals
}
constexpr std::uint64_t attr_size(int abi) {
  return abi >= 6 ? 24U : abi >= 4 ? 16U : 8U;
}

}  // namespace cofferdam::egress::landlock
