// What kind of address a name resolved to. Pure: no lookups.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "contract/network.h"

namespace cofferdam::egress {

enum class AddressKind {
  global,
  loopback,     // 127/8, ::1
  private_use,  // RFC 1918, CGNAT (RFC 6598), fc00::/7, fec0::/10
  link_local,   // 169.254/16 (cloud metadata), fe80::/10
  multicast,
  reserved,  // unspecified, documentation, benchmarking, broadcast, and whatever has no other name
};
const char* address_kind_name(AddressKind kind);

// 4 or 16 bytes in network order; any other length is `reserved`. IPv6 forms that carry an IPv4 address
// (mapped, compatible, NAT64, 6to4) are judged by that address: they are another spelling of it.
AddressKind classify_address(std::span<const std::uint8_t> bytes);

// Whether the gateway may connect to an address of `kind` on behalf of `host`, the configured upstream host.
// What is not global must have been asked for: by an address literal of that kind, or by the name localhost.
bool may_dial(AddressKind kind, std::string_view host);

using contract::AddressRange;
using contract::parse_range;
bool in_range(std::span<const std::uint8_t> bytes, const AddressRange& range);

// Which addresses a host may have.
struct AddressRule {
  enum class Kind {
    origin,  // may_dial()
    proxy,   // the user's own proxy: private networks as well, link-local only by literal
    ranges,  // exactly these; without any: global addresses only
  };
  Kind kind = Kind::origin;
  std::vector<AddressRange> ranges;
};
bool address_allowed(const AddressRule& rule, std::span<const std::uint8_t> bytes, std::string_view host);

}  // namespace cofferdam::egress
