// The upstream as configured: scheme, host, port and path prefix, in one spelling only.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "contract/network.h"

namespace cofferdam::egress {

using contract::is_host_name;
using contract::parse_address_literal;
using contract::parse_port;

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

}  // namespace cofferdam::egress
