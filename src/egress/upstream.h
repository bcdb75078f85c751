// The way to the vendor: one origin, resolved by the host, checked, pinned, and spoken to over verified TLS.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "egress/origin.h"

namespace cofferdam::egress {

// Why there is no (good) answer of the vendor. failure_name() is what the box and the account are told.
enum class VendorFailure {
  none,
  unreachable,  // no address, no connection, no handshake in time
  address,      // the name points to an address that is not allowed
  tls,          // no verified session
  reset,        // connection lost before the head of the answer was complete
  timeout,      // no head of an answer in time
  protocol,     // not an HTTP answer that we accept
  redirect,     // never followed
  too_large,
  cancelled,  // the box went away
};
const char* failure_name(VendorFailure failure);

using TlsStream = boost::asio::ssl::stream<boost::beast::tcp_stream>;

// One request's connection, cancellable from outside at any time.
class Call {
 public:
  void cancel();
  bool cancelled() const { return cancelled_; }
  TlsStream& stream() { return *stream_; }

 private:
  friend class Upstream;
  std::unique_ptr<TlsStream> stream_;
  bool cancelled_ = false;
};

class Upstream {
 public:
  // Code::config when `ca_bundle` cannot be read or holds no certificate.
  static Result<std::unique_ptr<Upstream>> create(boost::asio::io_context* context, const Origin& origin,
                                                  const std::string& ca_bundle);

  // Connects `call` with a verified session. The first call resolves; later ones use the checked addresses,
  // until none of them answers any more.
  boost::asio::awaitable<VendorFailure> connect(Call* call);

 private:
  using Endpoint = boost::asio::ip::tcp::endpoint;
  Upstream(boost::asio::io_context* context, const Origin& origin);
  Status prepare_tls(const std::string& ca_bundle);
  Status name_peer(TlsStream* stream) const;
  boost::asio::awaitable<VendorFailure> resolve();
  boost::asio::awaitable<VendorFailure> dial(Call* call, Endpoint endpoint);
  boost::asio::awaitable<VendorFailure> shake_hands(Call* call);

  boost::asio::io_context* context_;
  Origin origin_;
  boost::asio::ssl::context tls_;
  std::vector<Endpoint> pinned_;
};

}  // namespace cofferdam::egress
