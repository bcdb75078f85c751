#include "egress/tunnel_connection.h"

#include <fmt/core.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <chrono>
#include <exception>
#include <utility>
#include <vector>

#include "base/text.h"
#include "egress/address.h"
#include "egress/headers.h"
#include "egress/policy.h"
#include "egress/proxy_connect.h"
#include "egress/trust.h"

namespace cofferdam::egress {

namespace asio = boost::asio;
namespace beast = boost::beast;
using boost::system::error_code;
using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

namespace {

constexpr auto kHeadLimit = std::chrono::seconds(30);
constexpr std::size_t kMaxTunnels = 64;

DialTarget target_of(const GatewaySetup& setup, const Destination& destination) {
  const milliseconds limit(setup.policy.transport.connect_ms);
  if (setup.proxy.has_value()) {
    return {setup.proxy->host, setup.proxy->port, {AddressRule::Kind::proxy, {}}, limit};
  }
  DialTarget target{destination.host, destination.port, {AddressRule::Kind::ranges, {}}, limit};
  for (const std::string& text : destination.addresses) {
    auto range = parse_range(text);  // checked when the policy was read
    if (range.has_value()) target.rule.ranges.push_back(std::move(*range));
  }
  return target;
}

}  // namespace

void Tunnel::abort() {
  cancelled_ = true;
  close_both();
}

void Tunnel::close_both() {
  client_.close();
  server_.close();
}

void Tunnel::record(int status) {
  event_.status = status;
  auto took = std::chrono::duration_cast<milliseconds>(Clock::now() - start_);
  event_.took_ms = static_cast<std::uint64_t>(took.count());
  (*hub_->record_)(event_);
}

asio::awaitable<bool> Tunnel::read_more() {
  std::size_t before = buffer_.size();
  buffer_.resize(before + kTunnelBlock);
  error_code ec;
  std::size_t n = co_await client_.async_read_some(asio::buffer(buffer_.data() + before, kTunnelBlock),
                                                   asio::redirect_error(asio::use_awaitable, ec));
  buffer_.resize(before + (ec ? 0 : n));
  co_return !ec && n > 0;
}

asio::awaitable<bool> Tunnel::read_head() {
  client_.expires_after(kHeadLimit);
  while (find_head_end(buffer_) == std::string::npos && buffer_.size() <= kMaxHeadBytes) {
    bool more = co_await read_more();
    if (!more) co_return false;
  }
  co_return true;
}

// On record first, as everywhere: whoever reads the answer can already find the reason in the account.
asio::awaitable<void> Tunnel::refuse(std::string rule, int status) {
  event_.rule = rule;
  event_.denied = true;
  record(status);
  std::string body = denial_body(deny(std::move(rule), {}, status));
  std::string text = fmt::format(
                         "HTTP/1.1 {} {}\r\ncontent-type: application/json\r\ncontent-length: "
                         "{}\r\nconnection: close\r\n\r\n",
                         status, reason_phrase(status), body.size()) +
                     body;
  error_code ec;
  client_.expires_after(kHeadLimit);
  co_await asio::async_write(client_, asio::buffer(text), asio::redirect_error(asio::use_awaitable, ec));
  client_.socket().shutdown(asio::ip::tcp::socket::shutdown_send, ec);
  client_.expires_after(std::chrono::seconds(2));
  std::array<char, 4096> sink;
  while (!ec) {
    co_await client_.async_read_some(asio::buffer(sink), asio::redirect_error(asio::use_awaitable, ec));
  }
}

// Only after the decision is the name looked up. An empty rule: connected.
asio::awaitable<std::string> Tunnel::dial() {
  VendorFailure failure = co_await route_->dialer.connect(&server_, &cancelled_);
  if (failure == VendorFailure::none && hub_->setup_->proxy.has_value()) {
    const Destination& to = *decision_.destination;
    failure =
        co_await open_through_proxy(&server_, fmt::format("{}:{}", to.host, to.port),
                                    milliseconds(hub_->setup_->policy.transport.handshake_ms), &cancelled_);
  }
  if (failure == VendorFailure::none) co_return std::string();
  co_return failure == VendorFailure::address ? "tunnel: destination's address" : "tunnel: unreachable";
}

// False once the destination's bound for this direction is used up.
bool Tunnel::count(Side from, std::size_t bytes) {
  const Destination& to = *decision_.destination;
  std::uint64_t& used = from == Side::box ? route_->sent : route_->received;
  const std::uint64_t bound = from == Side::box ? to.max_sent : to.max_received;
  if (bytes > bound - std::min(bound, used)) {
    event_.rule = from == Side::box ? "tunnel: bytes sent" : "tunnel: bytes received";
    event_.denied = true;
    event_.limit = true;
    return false;
  }
  used += bytes;
  (from == Side::box ? event_.request_bytes : event_.response_bytes) += bytes;
  return true;
}

asio::awaitable<bool> Tunnel::send_outside(std::string_view bytes) {
  if (!count(Side::box, bytes.size())) co_return false;
  error_code ec;
  server_.expires_after(milliseconds(hub_->setup_->policy.transport.idle_ms));
  co_await asio::async_write(server_, asio::buffer(bytes), asio::redirect_error(asio::use_awaitable, ec));
  co_return !ec;
}

// One direction, until its end; then the other side is told, and the other direction goes on.
asio::awaitable<void> Tunnel::pump(Side from) {
  beast::tcp_stream& in = from == Side::box ? client_ : server_;
  beast::tcp_stream& out = from == Side::box ? server_ : client_;
  const milliseconds idle(hub_->setup_->policy.transport.idle_ms);
  std::vector<char> block(kTunnelBlock);
  error_code ec;
  bool failed = false;
  while (true) {
    std::size_t n =
        co_await in.async_read_some(asio::buffer(block), asio::redirect_error(asio::use_awaitable, ec));
    if (ec) break;
    // One request was judged: what else comes on this connection goes nowhere. The server was told to close.
    if (from == Side::box && decision_.destination->plain) continue;
    failed = !count(from, n);
    if (failed) break;
    in.expires_after(idle);
    out.expires_after(idle);
    co_await asio::async_write(out, asio::buffer(block.data(), n),
                               asio::redirect_error(asio::use_awaitable, ec));
    if (ec) break;
  }
  failed = failed || ec != asio::error::eof;
  if (failed) {
    close_both();
  } else {
    out.socket().shutdown(asio::ip::tcp::socket::shutdown_send, ec);
  }
  if (--open_pumps_ == 0) {
    close_both();
    record(event_.denied ? 0 : 200);
  }
}

asio::awaitable<void> Tunnel::carry() {
  const milliseconds idle(hub_->setup_->policy.transport.idle_ms);
  client_.expires_after(idle);
  server_.expires_after(idle);
  open_pumps_ = 2;
  asio::co_spawn(
      client_.get_executor(),
      [](std::shared_ptr<Tunnel> self) -> asio::awaitable<void> {
        co_await self->pump(Side::outside);
      }(shared_from_this()),
      [](const std::exception_ptr& failure) {
        if (failure) std::rethrow_exception(failure);
      });
  co_await pump(Side::box);
}

// The client says whom it wants only after it has been told to go on; nobody has been dialled until then.
asio::awaitable<bool> Tunnel::open_tunnel() {
  constexpr std::string_view go_on = "HTTP/1.1 200 Connection established\r\n\r\n";
  error_code ec;
  client_.expires_after(kHeadLimit);
  co_await asio::async_write(client_, asio::buffer(go_on), asio::redirect_error(asio::use_awaitable, ec));
  ClientHello hello = read_client_hello(buffer_);
  while (!ec && hello.state == ClientHello::State::more) {
    bool more = co_await read_more();
    if (!more) break;
    hello = read_client_hello(buffer_);
  }
  std::string rule = judge_hello(*decision_.destination, hello);
  if (rule.empty()) rule = co_await dial();
  if (rule.empty()) co_return true;
  event_.denied = rule != "tunnel: unreachable";
  event_.rule = std::move(rule);
  record(event_.denied ? 403 : 502);
  close_both();
  co_return false;
}

asio::awaitable<void> Tunnel::serve(const RequestHead& head) {
  decision_ = decide_tunnel(hub_->setup_->policy.transport.destinations, head);
  event_.host = printable(decision_.host, 253);
  event_.port = decision_.port;
  if (decision_.destination == nullptr) {
    co_await refuse(decision_.rule, decision_.status);
    co_return;
  }
  event_.rule = decision_.rule;
  route_ = &hub_->routes_.at(decision_.destination);
  if (route_->own_tls) {
    co_await fetch(head);
    co_return;
  }
  if (decision_.destination->plain) {
    std::string rule = co_await dial();
    if (!rule.empty()) {
      co_await refuse(std::move(rule), 502);
      co_return;
    }
    buffer_ = plain_head(head, decision_) + "\r\n";
  } else {
    bool open = co_await open_tunnel();
    if (!open) co_return;
  }
  bool sent = co_await send_outside(buffer_);
  buffer_ = std::string();
  if (!sent) {
    close_both();
    record(event_.denied ? 0 : 502);
    co_return;
  }
  co_await carry();
}

asio::awaitable<void> Tunnel::run() {
  bool whole = co_await read_head();
  if (!whole) co_return;
  std::size_t bytes = std::min(find_head_end(buffer_), buffer_.size());
  ParsedHead parsed = parse_request_head(std::string_view(buffer_).substr(0, bytes), TargetForm::proxy);
  buffer_.erase(0, bytes);
  event_.tunnelled = true;
  event_.method = parsed.head.method;
  event_.path = printable(parsed.head.target, 500);
  if (parsed.refusal) {
    co_await refuse(parsed.refusal->rule, parsed.refusal->status);
    co_return;
  }
  if (hub_->tunnels_.size() > kMaxTunnels) {
    co_await refuse("tunnel: too many connections", 503);
    co_return;
  }
  co_await serve(parsed.head);
}

TunnelHub::TunnelHub(asio::io_context* context, const GatewaySetup* setup, Names* names,
                     const std::function<void(const GatewayEvent&)>* record)
    : context_(context), setup_(setup), record_(record) {
  for (const Destination& destination : setup->policy.transport.destinations) {
    routes_.emplace(&destination, Route(Dialer(names, target_of(*setup, destination))));
  }
}

Status TunnelHub::use_credentials(std::vector<BrokerLine> lines) {
  const TransportPolicy& transport = setup_->policy.transport;
  auto line = lines.begin();
  for (const Destination& destination : transport.destinations) {
    if (destination.credential.empty()) continue;
    if (line == lines.end()) return make_error(Code::internal, "a destination's credential did not arrive");
    auto own = std::make_unique<OwnTls>();
    TRY_VOID(prepare_trust(own->context.native_handle(), destination.ca_bundle, transport.extra_ca_bundle));
    TRY(own->tokens, TokenStore::create(context_, std::move(line->first), std::move(line->socket)));
    routes_.at(&destination).own_tls = std::move(own);
    ++line;
  }
  return {};
}

void TunnelHub::drop_credentials() {
  for (auto& [destination, route] : routes_) route.own_tls.reset();
}

void TunnelHub::serve(asio::ip::tcp::socket socket) {
  auto tunnel = std::make_shared<Tunnel>(this, std::move(socket));
  asio::co_spawn(
      *context_,
      [](std::shared_ptr<Tunnel> running) -> asio::awaitable<void> { co_await running->run(); }(tunnel),
      [](const std::exception_ptr& failure) {
        if (failure) std::rethrow_exception(failure);
      });
}

void TunnelHub::abort_all() {
  std::vector<Tunnel*> tunnels(tunnels_.begin(), tunnels_.end());
  for (Tunnel* tunnel : tunnels) tunnel->abort();
  for (auto& [destination, route] : routes_) {
    if (route.own_tls) route.own_tls->tokens->close();
  }
}

}  // namespace cofferdam::egress
