#include "egress/origin.h"

#include <fmt/core.h>

#include <optional>
#include <vector>

#include "base/text.h"

namespace cofferdam::egress {
namespace {

struct Form {
  const char* what;
  std::string_view scheme;
  const char* shape;
};
constexpr Form kUpstream{"upstream", "https://", "https://host[:port][/prefix]"};
constexpr Form kProxy{"proxy", "http://", "http://host:port"};

Error malformed(const Form& form, std::string_view url) {
  return make_error(
      Code::config,
      fmt::format("the {} \"{}\" is not of the form {}", form.what, printable(url, 200), form.shape),
      "name a host in lower case or an address, without user or query");
}

// A port of 0 stands for none.
Result<Origin> parse_url(const Form& form, std::string_view url) {
  if (!starts_with(url, form.scheme)) return malformed(form, url);
  std::string_view rest = url.substr(form.scheme.size());
  Origin origin;
  origin.port = 0;
  if (std::size_t slash = rest.find('/'); slash != std::string_view::npos) {
    origin.prefix = std::string(rest.substr(slash));
    rest = rest.substr(0, slash);
    if (!contract::is_url_prefix(origin.prefix)) return malformed(form, url);
  }
  bool bracketed = !rest.empty() && rest.front() == '[';
  std::size_t host_end = bracketed ? rest.find(']') : rest.find(':');
  if (bracketed && host_end == std::string_view::npos) return malformed(form, url);
  origin.host = std::string(bracketed ? rest.substr(1, host_end - 1) : rest.substr(0, host_end));
  rest = host_end == std::string_view::npos ? "" : rest.substr(host_end + (bracketed ? 1 : 0));
  if (!rest.empty()) {
    auto port = rest.front() == ':' ? parse_port(rest.substr(1)) : std::nullopt;
    if (!port.has_value()) return malformed(form, url);
    origin.port = *port;
  }
  auto literal = parse_address_literal(origin.host);
  origin.is_literal = literal.has_value();
  bool is_ipv6 = literal.has_value() && literal->size() == 16;
  if (bracketed != is_ipv6) return malformed(form, url);
  if (!literal.has_value() && !is_host_name(origin.host)) return malformed(form, url);
  return origin;
}

}  // namespace

std::string Origin::authority() const {
  std::string out = host.find(':') == std::string::npos ? host : "[" + host + "]";
  return port == 443 ? out : fmt::format("{}:{}", out, port);
}

Result<Origin> parse_origin(std::string_view url) {
  TRY(Origin origin, parse_url(kUpstream, url));
  if (origin.port == 0) origin.port = 443;
  return origin;
}

Result<Origin> parse_proxy(std::string_view url) {
  TRY(Origin origin, parse_url(kProxy, url));
  if (origin.port == 0 || !origin.prefix.empty()) return malformed(kProxy, url);
  return origin;
}

}  // namespace cofferdam::egress
