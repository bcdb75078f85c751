// The way to a destination whose credential the gateway sets: the box asks in plain HTTP, TLS is ours.
#include <fmt/core.h>
#include <openssl/ssl.h>

#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <vector>

#include "base/text.h"
#include "egress/trust.h"
#include "egress/tunnel_connection.h"

namespace cofferdam::egress {

namespace asio = boost::asio;
using boost::system::error_code;
using std::chrono::milliseconds;

std::string plain_head(const RequestHead& head, const TunnelDecision& decision) {
  const Destination& to = *decision.destination;
  std::string out = fmt::format("{} {} HTTP/1.1\r\nhost: {}", head.method, decision.target, to.host);
  if (to.port != (to.credential.empty() ? 80 : 443)) out += fmt::format(":{}", to.port);
  out += "\r\nconnection: close\r\n";
  for (const HeaderField& field : head.fields) {
    const bool dropped = field.name == "host" || field.name == "connection" || field.name == "keep-alive" ||
                         field.name == "te" || field.name == "upgrade" || starts_with(field.name, "proxy-");
    const bool credential = field.name == "authorization" || field.name == "cookie";
    const bool replaced = credential && !to.credential.empty();
    if (!dropped && !replaced) out += fmt::format("{}: {}\r\n", field.name, field.value);
  }
  return out;
}

// An empty rule: the host is who it should be.
asio::awaitable<std::string> Tunnel::shake_hands(TlsOver* tls) {
  if (!expect_host(tls->native_handle(), decision_.destination->host)) co_return "tunnel: tls";
  error_code ec;
  server_.expires_after(milliseconds(hub_->setup_->policy.transport.handshake_ms));
  co_await tls->async_handshake(asio::ssl::stream_base::client,
                                asio::redirect_error(asio::use_awaitable, ec));
  // Asked for by SSL_VERIFY_PEER already; asked again because a credential hangs on it.
  SSL* native = tls->native_handle();
  const bool verified =
      !ec && ::SSL_get0_peer_certificate(native) != nullptr && ::SSL_get_verify_result(native) == X509_V_OK;
  co_return verified ? "" : "tunnel: tls";
}

// The whole request into `request`. An empty rule: there is a credential.
asio::awaitable<std::string> Tunnel::set_credential(const RequestHead& head, std::string* request) {
  TokenStore::Handle credential = co_await route_->own_tls->tokens->current();
  if (credential == nullptr) co_return "tunnel: credential";
  credential_seq_ = credential->seq;
  const std::string fields = plain_head(head, decision_);
  request->reserve(fields.size() + header_bytes(*credential) + 2);
  request->append(fields);
  append_credential(*credential, request);
  request->append("\r\n");
  co_return std::string();
}

// The answer as it is, until its end. False when it did not get there whole.
asio::awaitable<bool> Tunnel::hand_on(TlsOver* tls) {
  const milliseconds idle(hub_->setup_->policy.transport.idle_ms);
  std::vector<char> block(kTunnelBlock);
  std::string status_line;
  error_code ec;
  while (true) {
    server_.expires_after(idle);
    const std::size_t n =
        co_await tls->async_read_some(asio::buffer(block), asio::redirect_error(asio::use_awaitable, ec));
    if (ec) break;
    if (!count(Side::outside, n)) co_return false;
    constexpr std::string_view rejected = "HTTP/1.1 401";
    if (status_line.size() < rejected.size()) {
      status_line.append(block.data(), std::min(n, rejected.size() - status_line.size()));
      if (status_line == rejected) route_->own_tls->tokens->rejected(credential_seq_);
    }
    client_.expires_after(idle);
    co_await asio::async_write(client_, asio::buffer(block.data(), n),
                               asio::redirect_error(asio::use_awaitable, ec));
    if (ec) co_return false;
  }
  // Servers that close without saying so are many; the length of the answer tells the box whether it is
  // whole.
  co_return ec == asio::error::eof || ec == asio::ssl::error::stream_truncated;
}

asio::awaitable<void> Tunnel::fetch(const RequestHead& head) {
  TlsOver tls(server_, route_->own_tls->context);
  std::string request;
  std::string rule = co_await dial();
  if (rule.empty()) rule = co_await shake_hands(&tls);
  if (rule.empty()) rule = co_await set_credential(head, &request);
  if (!rule.empty()) {
    co_await refuse(std::move(rule), 502);
    co_return;
  }
  bool whole = count(Side::box, request.size());
  if (whole) {
    error_code ec;
    server_.expires_after(milliseconds(hub_->setup_->policy.transport.idle_ms));
    co_await asio::async_write(tls, asio::buffer(request), asio::redirect_error(asio::use_awaitable, ec));
    whole = !ec;
  }
  wipe_string(&request);
  if (whole) whole = co_await hand_on(&tls);
  error_code ignored;
  if (whole) client_.socket().shutdown(asio::ip::tcp::socket::shutdown_send, ignored);
  close_both();
  record(event_.denied ? 0 : whole ? 200 : 502);
}

}  // namespace cofferdam::egress
