#include "egress/origin.h"

#include <arpa/inet.h>
#include <fmt/core.h>

#include <algorithm>
#include <charconv>

#include "base/text.h"

namespace cofferdam::egress {
namespace {

bool is_lower_alnum(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

// RFC 1123 names in lower case. A last label that is a number would be an address in a spelling of its own
// ("2130706433", "127.1", "0x7f000001"): resolvers disagree on those, so they are nobody's name.
bool is_host_name(std::string_view host) {
  if (host.empty() || host.size() > 253) return false;
  std::vector<std::string> labels = split(host, '.');
  for (const std::string& label : labels) {
    if (label.empty() || label.size() > 63 || label.front() == '-' || label.back() == '-') return false;
    if (!std::all_of(label.begin(), label.end(), [](char c) { return is_lower_alnum(c) || c == '-'; }))
      return false;
  }
  if (host.back() == '.') return false;
  const std::string& last = labels.back();
  bool numeric = std::all_of(last.begin(), last.end(), [](char c) { return c >= '0' && c <= '9'; });
  return !numeric && !starts_with(last, "0x");
}

// Plain parts only: nothing that two servers could read differently.
bool is_prefix(std::string_view path) {
  constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._~-";
  if (path.size() > 256 || path.size() < 2 || path.back() == '/') return false;
  for (const std::string& part : split(path.substr(1), '/')) {
    if (part.empty() || part == "." || part == "..") return false;
    if (part.find_first_not_of(kPlain) != std::string::npos) return false;
  }
  return true;
}

Error malformed(std::string_view url) {
  return make_error(
      Code::config,
      fmt::format("the upstream \"{}\" is not of the form https://host[:port][/prefix]", printable(url, 200)),
      "name a host in lower case or an address, without user or query");
}

}  // namespace

std::optional<std::vector<std::uint8_t>> parse_address_literal(std::string_view host) {
  std::string text(host);
  if (text.find('\0') != std::string::npos) return std::nullopt;
  std::vector<std::uint8_t> v4(4);
  if (::inet_pton(AF_INET, text.c_str(), v4.data()) == 1) return v4;
  std::vector<std::uint8_t> v6(16);
  if (::inet_pton(AF_INET6, text.c_str(), v6.data()) == 1) return v6;
  return std::nullopt;
}

std::string Origin::authority() const {
  std::string out = host.find(':') == std::string::npos ? host : "[" + host + "]";
  return port == 443 ? out : fmt::format("{}:{}", out, port);
}

Result<Origin> parse_origin(std::string_view url) {
  constexpr std::string_view scheme = "https://";
  if (!starts_with(url, scheme)) return malformed(url);
  std::string_view rest = url.substr(scheme.size());
  Origin origin;
  if (std::size_t slash = rest.find('/'); slash != std::string_view::npos) {
    origin.prefix = std::string(rest.substr(slash));
    rest = rest.substr(0, slash);
    if (!is_prefix(origin.prefix)) return malformed(url);
  }
  bool bracketed = !rest.empty() && rest.front() == '[';
  std::size_t host_end = bracketed ? rest.find(']') : rest.find(':');
  if (bracketed && host_end == std::string_view::npos) return malformed(url);
  origin.host = std::string(bracketed ? rest.substr(1, host_end - 1) : rest.substr(0, host_end));
  rest = host_end == std::string_view::npos ? "" : rest.substr(host_end + (bracketed ? 1 : 0));
  if (!rest.empty()) {
    unsigned port = 0;
    std::string_view digits = rest.substr(1);
    auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), port);
    bool whole = parsed.ec == std::errc() && parsed.ptr == digits.data() + digits.size();
    if (rest.front() != ':' || !whole || port == 0 || port > 65535 || digits.front() == '0')
      return malformed(url);
    origin.port = static_cast<std::uint16_t>(port);
  }
  auto literal = parse_address_literal(origin.host);
  origin.is_literal = literal.has_value();
  bool is_ipv6 = literal.has_value() && literal->size() == 16;
  if (bracketed != is_ipv6) return malformed(url);
  if (!literal.has_value() && !is_host_name(origin.host)) return malformed(url);
  return origin;
}

}  // namespace cofferdam::egress
