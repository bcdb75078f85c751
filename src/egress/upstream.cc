#include "egress/upstream.h"

#include <fmt/core.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core/error.hpp>
#include <chrono>
#include <utility>

#include "base/file.h"
#include "egress/address.h"

namespace cofferdam::egress {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;
using tcp = asio::ip::tcp;

constexpr auto kConnectLimit = std::chrono::seconds(10);  // for each address
constexpr auto kHandshakeLimit = std::chrono::seconds(15);
constexpr std::size_t kMaxAddresses = 8;
constexpr std::size_t kMaxBundleBytes = 16U << 20U;

// Adds every certificate of a PEM text and says how many there were.
int add_certificates(X509_STORE* store, const std::string& pem) {
  BIO* bio = ::BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size()));
  int count = 0;
  while (X509* certificate = ::PEM_read_bio_X509(bio, nullptr, nullptr, nullptr)) {
    if (::X509_STORE_add_cert(store, certificate) == 1) ++count;
    ::X509_free(certificate);
  }
  ::BIO_free(bio);
  ::ERR_clear_error();  // the last read ended with "no start line"
  return count;
}

AddressKind kind_of(const asio::ip::address& address) {
  if (address.is_v4()) return classify_address(address.to_v4().to_bytes());
  return classify_address(address.to_v6().to_bytes());
}

}  // namespace

const char* failure_name(VendorFailure failure) {
  switch (failure) {
    case VendorFailure::none:
      return "none";
    case VendorFailure::unreachable:
      return "vendor-unreachable";
    case VendorFailure::address:
      return "vendor-address";
    case VendorFailure::tls:
      return "vendor-tls";
    case VendorFailure::reset:
      return "vendor-reset";
    case VendorFailure::timeout:
      return "vendor-timeout";
    case VendorFailure::protocol:
      return "vendor-protocol";
    case VendorFailure::redirect:
      return "redirect";
    case VendorFailure::too_large:
      return "vendor-too-large";
    case VendorFailure::cancelled:
      break;
  }
  return "client-gone";
}

void Call::cancel() {
  cancelled_ = true;
  // Closing ends whatever operation is pending on it, in every stage.
  if (stream_) stream_->next_layer().close();
}

Upstream::Upstream(asio::io_context* context, const Origin& origin)
    : context_(context), origin_(origin), tls_(asio::ssl::context::tls_client) {}

Result<std::unique_ptr<Upstream>> Upstream::create(asio::io_context* context, const Origin& origin,
                                                   const std::string& ca_bundle) {
  std::unique_ptr<Upstream> out(new Upstream(context, origin));
  TRY_VOID(out->prepare_tls(ca_bundle));
  return out;
}

Status Upstream::prepare_tls(const std::string& ca_bundle) {
  SSL_CTX* native = tls_.native_handle();
  ::SSL_CTX_set_verify(native, SSL_VERIFY_PEER, nullptr);
  if (::SSL_CTX_set_min_proto_version(native, TLS1_2_VERSION) != 1) {
    return make_error(Code::unsupported_host, "OpenSSL cannot be held to TLS 1.2 or later");
  }
  if (ca_bundle.empty()) {
    if (::SSL_CTX_set_default_verify_paths(native) == 1) return {};
    return make_error(Code::unsupported_host, "the system's certificates cannot be used", "set ca_bundle");
  }
  auto pem = read_file(ca_bundle, kMaxBundleBytes);
  if (!pem) {
    return make_error(Code::config,
                      fmt::format("cannot read the CA bundle {}: {}", ca_bundle, pem.error().what));
  }
  if (add_certificates(::SSL_CTX_get_cert_store(native), *pem) > 0) return {};
  return make_error(Code::config, fmt::format("the CA bundle {} holds no certificate", ca_bundle),
                    "it must be a PEM file");
}

// What the certificate must be for; with SNI for names (RFC 6066 knows no addresses).
Status Upstream::name_peer(TlsStream* stream) const {
  SSL* native = stream->native_handle();
  bool ok = false;
  if (origin_.is_literal) {
    ok = ::X509_VERIFY_PARAM_set1_ip_asc(::SSL_get0_param(native), origin_.host.c_str()) == 1;
  } else {
    std::string name = origin_.host;
    ::SSL_set_hostflags(native, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    // SSL_set_tlsext_host_name(3), whose macro is a cast of the old style.
    ok = ::SSL_set1_host(native, name.c_str()) == 1 &&
         ::SSL_ctrl(native, SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name, name.data()) == 1;
  }
  if (!ok) return make_error(Code::internal, "cannot set the name to verify");
  return {};
}

asio::awaitable<VendorFailure> Upstream::resolve() {
  tcp::resolver resolver(*context_);
  error_code ec;
  auto flags = tcp::resolver::numeric_service;
  std::string port = std::to_string(origin_.port);
  auto found = co_await resolver.async_resolve(origin_.host, port, flags,
                                               asio::redirect_error(asio::use_awaitable, ec));
  if (ec) co_return VendorFailure::unreachable;
  std::vector<Endpoint> endpoints;
  for (const auto& entry : found) {
    // All or nothing: a name that points to the vendor and to somewhere inside is not a mistake to work
    // around.
    if (!may_dial(kind_of(entry.endpoint().address()), origin_.host)) co_return VendorFailure::address;
    if (endpoints.size() < kMaxAddresses) endpoints.push_back(entry.endpoint());
  }
  pinned_ = std::move(endpoints);
  co_return pinned_.empty() ? VendorFailure::unreachable : VendorFailure::none;
}

asio::awaitable<VendorFailure> Upstream::dial(Call* call, Endpoint endpoint) {
  call->stream_ = std::make_unique<TlsStream>(boost::beast::tcp_stream(*context_), tls_);
  auto& lowest = call->stream_->next_layer();
  error_code ec;
  lowest.expires_after(kConnectLimit);
  co_await lowest.async_connect(endpoint, asio::redirect_error(asio::use_awaitable, ec));
  if (call->cancelled_) co_return VendorFailure::cancelled;
  if (ec) co_return VendorFailure::unreachable;
  lowest.socket().set_option(tcp::no_delay(true), ec);
  co_return VendorFailure::none;
}

asio::awaitable<VendorFailure> Upstream::shake_hands(Call* call) {
  if (!name_peer(call->stream_.get())) co_return VendorFailure::tls;
  error_code ec;
  call->stream_->next_layer().expires_after(kHandshakeLimit);
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

asio::awaitable<VendorFailure> Upstream::connect(Call* call) {
  if (pinned_.empty()) {
    VendorFailure failure = co_await resolve();
    if (call->cancelled_) co_return VendorFailure::cancelled;
    if (failure != VendorFailure::none) co_return failure;
  }
  // A copy: another request may drop the list while this one waits.
  std::vector<Endpoint> endpoints = pinned_;
  for (const Endpoint& endpoint : endpoints) {
    VendorFailure failure = co_await dial(call, endpoint);
    if (failure == VendorFailure::unreachable) continue;
    if (failure != VendorFailure::none) co_return failure;
    co_return co_await shake_hands(call);
  }
  pinned_.clear();  // the next request asks again, and what it learns is checked again
  co_return VendorFailure::unreachable;
}

}  // namespace cofferdam::egress
