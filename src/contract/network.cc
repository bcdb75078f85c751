#include "contract/network.h"

#include <arpa/inet.h>

#include <algorithm>
#include <charconv>
#include <string>
#include <utility>

#include "base/text.h"

namespace cofferdam::contract {
namespace {

bool is_lower_alnum(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

}  // namespace

std::optional<std::uint16_t> parse_port(std::string_view digits) {
  unsigned port = 0;
  auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  bool whole = parsed.ec == std::errc() && parsed.ptr == digits.data() + digits.size();
  if (!whole || port == 0 || port > 65535 || digits.front() == '0') return std::nullopt;
  return static_cast<std::uint16_t>(port);
}

bool is_url_prefix(std::string_view path) {
  constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._~-";
  if (path.size() > 256 || path.size() < 2 || path.front() != '/' || path.back() == '/') return false;
  for (const std::string& part : split(path.substr(1), '/')) {
    if (part.empty() || part == "." || part == "..") return false;
    if (part.find_first_not_of(kPlain) != std::string::npos) return false;
  }
  return true;
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

std::optional<std::vector<std::uint8_t>> parse_address_literal(std::string_view host) {
  std::string text(host);
  if (text.find('\0') != std::string::npos) return std::nullopt;
  std::vector<std::uint8_t> v4(4);
  if (::inet_pton(AF_INET, text.c_str(), v4.data()) == 1) return v4;
  std::vector<std::uint8_t> v6(16);
  if (::inet_pton(AF_INET6, text.c_str(), v6.data()) == 1) return v6;
  return std::nullopt;
}

std::optional<AddressRange> parse_range(std::string_view text) {
  std::size_t slash = text.find('/');
  auto literal = parse_address_literal(text.substr(0, slash));
  if (!literal.has_value()) return std::nullopt;
  AddressRange range{std::move(*literal), 0};
  const unsigned width = static_cast<unsigned>(range.prefix.size()) * 8U;
  range.bits = width;
  if (slash == std::string_view::npos) return range;
  std::string_view digits = text.substr(slash + 1);
  auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), range.bits);
  bool whole = parsed.ec == std::errc() && parsed.ptr == digits.data() + digits.size();
  if (!whole || range.bits > width || (digits.size() > 1 && digits.front() == '0')) return std::nullopt;
  for (unsigned i = range.bits; i < width; ++i) {
    if (((static_cast<unsigned>(range.prefix[i / 8]) >> (7U - i % 8U)) & 1U) != 0) return std::nullopt;
  }
  return range;
}

}  // namespace cofferdam::contract
