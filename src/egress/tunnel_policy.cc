#include "egress/tunnel_policy.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/text.h"
#include "egress/origin.h"

namespace cofferdam::egress {
namespace {

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return out;
}

TunnelDecision denied(const char* rule, int status = 403) {
  return {nullptr, rule, status};
}

// Whatever starts like an address is one, in whichever spelling: brackets, digits, 0x, a zone.
bool looks_like_address(std::string_view host) {
  if (host.empty() || host.find_first_of("[]%:") != std::string_view::npos) return true;
  const std::size_t dot = host.rfind('.');
  std::string_view last = dot == std::string_view::npos ? host : host.substr(dot + 1);
  const bool number = !last.empty() && last.find_first_not_of("0123456789") == std::string_view::npos;
  return number || starts_with(last, "0x") || parse_address_literal(host).has_value();
}

// A host from the list at a port from the list, letter by letter but for case.
TunnelDecision match(const std::vector<Destination>& destinations, const std::string& host,
                     std::string_view port_digits, bool plain) {
  if (looks_like_address(host)) return denied("tunnel: address");
  if (!is_host_name(host)) return denied("tunnel: host");
  auto port = parse_port(port_digits);
  if (!port.has_value()) return denied("tunnel: port");
  bool host_known = false;
  for (const Destination& destination : destinations) {
    if (destination.host != host) continue;
    host_known = true;
    if (destination.port != *port) continue;
    const bool credential = !destination.credential.empty();
    if ((destination.plain || credential) != plain) {
      return denied(plain        ? "tunnel: not plain"
                    : credential ? "tunnel: tls is the gateway's"
                                 : "tunnel: plain only");
    }
    return {&destination, credential ? "credential" : plain ? "plain" : "tunnel", 200};
  }
  return denied(host_known ? "tunnel: port" : "tunnel: destination");
}

TunnelDecision find(const std::vector<Destination>& destinations, const std::string& host,
                    std::string_view port_digits, bool plain) {
  TunnelDecision out = match(destinations, host, port_digits, plain);
  out.host = host;
  out.port = parse_port(port_digits).value_or(0);
  return out;
}

TunnelDecision decide_plain(const std::vector<Destination>& destinations, const RequestHead& head) {
  constexpr std::string_view scheme = "http://";
  if (head.method != "GET" && head.method != "HEAD") return denied("tunnel: method", 405);
  if (head.framing != Framing::none || head.expect_continue) return denied("tunnel: body", 400);
  std::string_view rest = head.target;
  if (!starts_with(rest, scheme)) return denied("tunnel: scheme", 400);
  rest.remove_prefix(scheme.size());
  const std::size_t slash = std::min(rest.find_first_of("/?"), rest.size());
  std::string authority = lower(rest.substr(0, slash));
  // One authority per request: the Host field may not name another one.
  const std::string* named = find_field(head, "host");
  if (named == nullptr || lower(*named) != authority) return denied("tunnel: host field", 400);
  const std::size_t colon = authority.rfind(':');
  const bool has_port = colon != std::string::npos && authority.back() != ']';
  TunnelDecision out = find(destinations, authority.substr(0, has_port ? colon : std::string::npos),
                            has_port ? std::string_view(authority).substr(colon + 1) : "80", true);
  out.target = slash < rest.size() && rest[slash] == '/' ? std::string(rest.substr(slash))
                                                         : "/" + std::string(rest.substr(slash));
  return out;
}

}  // namespace

TunnelDecision decide_tunnel(const std::vector<Destination>& destinations, const RequestHead& head) {
  if (head.method != "CONNECT") return decide_plain(destinations, head);
  if (head.framing != Framing::none || head.expect_continue) return denied("tunnel: body", 400);
  const std::string authority = lower(head.target);
  const std::size_t colon = authority.rfind(':');
  if (colon == std::string::npos) return denied("tunnel: port", 400);
  const std::string* named = find_field(head, "host");
  const bool same = named != nullptr && (lower(*named) == authority ||
                                         lower(*named) == std::string_view(authority).substr(0, colon));
  if (!same) return denied("tunnel: host field", 400);
  return find(destinations, authority.substr(0, colon), std::string_view(authority).substr(colon + 1), false);
}

std::string judge_hello(const Destination& destination, const ClientHello& hello) {
  if (hello.state != ClientHello::State::done) return "tunnel: not tls";
  if (hello.encrypted) return "tunnel: ech";
  if (!hello.server_name.has_value()) return "tunnel: no sni";
  return lower(*hello.server_name) == destination.host ? "" : "tunnel: sni";
}

}  // namespace cofferdam::egress
