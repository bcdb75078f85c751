// Names, ports and address ranges as the invocation, the configuration and the gateway spell them. Pure: no
// lookups.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace cofferdam::contract {

// 1 to 65535 in digits, without a leading zero.
std::optional<std::uint16_t> parse_port(std::string_view digits);
// "/part[/part]" of unreserved characters (RFC 3986), at most 256 bytes: nothing that two servers could read
// differently.
bool is_url_prefix(std::string_view path);
// RFC 1123 names in lower case, and no spelling of an address.
bool is_host_name(std::string_view host);
// The bytes of a dotted quad or an IPv6 address without zone; nullopt for everything else, so also for names.
std::optional<std::vector<std::uint8_t>> parse_address_literal(std::string_view host);

// "10.0.0.0/8", "fd00::/8", or one address; no bits may be set behind the prefix.
struct AddressRange {
  std::vector<std::uint8_t> prefix;
  unsigned bits = 0;
};
std::optional<AddressRange> parse_range(std::string_view text);

}  // namespace cofferdam::contract
