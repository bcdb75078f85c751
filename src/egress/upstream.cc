#include "egress/upstream.h"

#include <fmt/core.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <sys/socket.h>

#include <algorithm>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core/error.hpp>
#include <cerrno>
#include <utility>

#include "egress/proxy_connect.h"
#include "egress/trust.h"

namespace cofferdam::egress {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;
using std::chrono::milliseconds;

constexpr std::size_t kMaxIdle = 16;

DialTarget dial_target(const GatewaySetup& setup) {
  const TransportPolicy& transport = setup.policy.transport;
  const milliseconds limit(transport.connect_ms);
  if (!setup.proxy.has_value()) return {setup.origin.host, setup.origin.port, {}, limit};
  return {setup.proxy->host, setup.proxy->port, {AddressRule::Kind::proxy, {}}, limit};
}

// Nothing to read and not closed. A vendor that talks without having been asked is not understood either.
bool is_quiet(TlsStream* stream) {
  char byte = 0;
  ssize_t n = ::recv(stream->next_layer().socket().native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return n < 0 && errno == EAGAIN && ::SSL_pending(stream->native_handle()) == 0;
}

}  // namespace

void Call::cancel() {
  cancelled_ = true;
  // Closing ends whatever operation is pending on it, in every stage.
  if (stream_) stream_->next_layer().close();
}

Upstream::Upstream(asio::io_context* context, Names* names, const GatewaySetup& setup)
    : context_(context),
      setup_(&setup),
      tls_(asio::ssl::context::tls_client),
      dialer_(names, dial_target(setup)),
      expiry_(*context) {}

Result<std::unique_ptr<Upstream>> Upstream::create(asio::io_context* context, Names* names,
                                                   const GatewaySetup& setup) {
  std::unique_ptr<Upstream> out(new Upstream(context, names, setup));
  TRY_VOID(prepare_trust(out->tls_.native_handle(), setup.policy.ca_bundle,
                         setup.policy.transport.extra_ca_bundle));
  return out;
}

// What the certificate must be for; with SNI for names (RFC 6066 knows no addresses).
Status Upstream::name_peer(TlsStream* stream) const {
  SSL* native = stream->native_handle();
  bool ok = false;
  if (setup_->origin.is_literal) {
    ok = ::X509_VERIFY_PARAM_set1_ip_asc(::SSL_get0_param(native), setup_->origin.host.c_str()) == 1;
  } else {
    ok = expect_host(native, setup_->origin.host);
  }
  if (!ok) return make_error(Code::internal, "cannot set the name to verify");
  return {};
}

asio::awaitable<VendorFailure> Upstream::dial(Call* call) {
  call->stream_ = std::make_unique<TlsStream>(boost::beast::tcp_stream(*context_), tls_);
  auto& lowest = call->stream_->next_layer();
  VendorFailure failure = co_await dialer_.connect(&lowest, &call->cancelled_);
  if (failure != VendorFailure::none || !setup_->proxy.has_value()) co_return failure;
  const Origin& origin = setup_->origin;
  const bool v6 = origin.host.find(':') != std::string::npos;
  std::string authority = fmt::format("{}:{}", v6 ? "[" + origin.host + "]" : origin.host, origin.port);
  co_return co_await open_through_proxy(
      &lowest, std::move(authority), milliseconds(setup_->policy.transport.handshake_ms), &call->cancelled_);
}

asio::awaitable<VendorFailure> Upstream::shake_hands(Call* call) {
  if (!name_peer(call->stream_.get())) co_return VendorFailure::tls;
  error_code ec;
  call->stream_->next_layer().expires_after(milliseconds(setup_->policy.transport.handshake_ms));
  co_await call->stream_->async_handshake(asio::ssl::stream_base::client,
                                          asio::redirect_error(asio::use_awaitable, ec));
  if (call->cancelled_) co_return VendorFailure::cancelled;
  if (ec == boost::beast::error::timeout) co_return VendorFailure::unreachable;
  // Asked for by SSL_VERIFY_PEER already; asked again because everything hangs on it.
  SSL* native = call->stream_->native_handle();
  bool verified =
      !ec && ::SSL_get0_peer_certificate(native) != nullptr && ::SSL_get_verify_result(native) == X509_V_OK;
  co_return verified ? VendorFailure::none : VendorFailure::tls;
}

bool Upstream::take_idle(Call* call) {
  drop_expired();
  while (!idle_.empty()) {
    std::unique_ptr<TlsStream> stream = std::move(idle_.back().stream);
    idle_.pop_back();
    if (!is_quiet(stream.get())) continue;
    call->stream_ = std::move(stream);
    return true;
  }
  return false;
}

void Upstream::drop_expired() {
  const auto now = Clock::now();
  idle_.erase(std::remove_if(idle_.begin(), idle_.end(), [&](const Idle& idle) { return idle.until <= now; }),
              idle_.end());
  if (idle_.empty()) return;
  // Oldest first, since all are kept equally long: nothing idle outlives its time by more than the timer.
  expiry_.expires_at(idle_.front().until);
  expiry_.async_wait([this](error_code ec) {
    if (!ec) drop_expired();
  });
}

void Upstream::keep(Call* call) {
  const milliseconds time(setup_->policy.transport.keep_ms);
  if (time.count() == 0 || idle_.size() >= kMaxIdle || call->cancelled_) return;
  call->stream_->next_layer().expires_never();
  idle_.push_back({std::move(call->stream_), Clock::now() + time});
  drop_expired();
}

asio::awaitable<VendorFailure> Upstream::connect(Call* call) {
  if (take_idle(call)) co_return VendorFailure::none;
  VendorFailure failure = co_await dial(call);
  if (failure != VendorFailure::none) co_return failure;
  co_return co_await shake_hands(call);
}

}  // namespace cofferdam::egress
