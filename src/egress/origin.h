// The upstream as configured: scheme, host, port and path prefix, in one spelling only.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace cofferdam::egress {

struct Origin {
  std::string host;  // lower-case name, or an address literal without brackets
  std::uint16_t port = 443;
  bool is_literal = false;
  std::string prefix;  // "" or "/some/path": before every target, for model gateways that live below one

  // For the Host header (RFC 9110, section 7.2): brackets around IPv6, the port only if it is not 443.
  std::string authority() const;
};

// "https://host[:port][/prefix]". No user information, no query, no empty or dotted part, no trailing dot, no
// short or octal address forms, ASCII only.
Result<Origin> parse_origin(std::string_view url);
// "http://host:port", by the same rules; the port must be said. No credentials: they would stand in the
// configuration.
Result<Origin> parse_proxy(std::string_view url);
// 1 to 65535 in digits, without a leading zero.
std::optional<std::uint16_t> parse_port(std::string_view digits);
// RFC 1123 names in lower case, and no spelling of an address.
bool is_host_name(std::string_view host);

// The bytes of a dotted quad or an IPv6 address without zone; nullopt for everything else, so also for names.
std::optional<std::vector<std::uint8_t>> parse_address_literal(std::string_view host);

}  // namespace cofferdam::egress
