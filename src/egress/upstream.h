// The way to the vendor: one origin, resolved by the host, checked, pinned, and spoken to over verified TLS.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "egress/dialer.h"
#include "egress/gateway_setup.h"
#include "egress/vendor_failure.h"

namespace cofferdam::egress {

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
  // Code::config when a CA bundle cannot be read or holds no certificate. `names` and `setup` outlive it.
  static Result<std::unique_ptr<Upstream>> create(boost::asio::io_context* context, Names* names,
                                                  const GatewaySetup& setup);

  // Connects `call` with a verified session: one that is kept and still quiet, or a new
  // one.
  boost::asio::awaitable<VendorFailure> connect(Call* call);
  // Keeps the connection for the next request. Only when the answer has been read to its end and the vendor
  // did not announce to close it.
  void keep(Call* call);

 private:
  using Clock = std::chrono::steady_clock;
  struct Idle {
    std::unique_ptr<TlsStream> stream;
    Clock::time_point until;
  };
  Upstream(boost::asio::io_context* context, Names* names, const GatewaySetup& setup);
  Status name_peer(TlsStream* stream) const;
  bool take_idle(Call* call);
  void drop_expired();
  boost::asio::awaitable<VendorFailure> dial(Call* call);
  boost::asio::awaitable<VendorFailure> shake_hands(Call* call);

  boost::asio::io_context* context_;
  const GatewaySetup* setup_;
  boost::asio::ssl::context tls_;
  Dialer dialer_;
  std::vector<Idle> idle_;  // the one used last stands last
  boost::asio::steady_timer expiry_;
};

}  // namespace cofferdam::egress
