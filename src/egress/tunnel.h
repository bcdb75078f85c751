// The allow-list mode: a second listener in the box, spoken to as an HTTP proxy. Each connection is decided
// once, carries one tunnel or one plain request, and is counted against its destination.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "egress/dialer.h"
#include "egress/gateway.h"
#include "egress/gateway_setup.h"
#include "egress/token_store.h"
#include "egress/tunnel_policy.h"

namespace cofferdam::egress {

class Tunnel;

// What it takes to set a destination's credential: TLS of our own, and the newest token.
struct OwnTls {
  boost::asio::ssl::context context{boost::asio::ssl::context::tls_client};
  std::unique_ptr<TokenStore> tokens;
};

// What all connections of the allow-list share.
class TunnelHub {
 public:
  // `setup`, `names` and `record` outlive it.
  TunnelHub(boost::asio::io_context* context, const GatewaySetup* setup, Names* names,
            const std::function<void(const GatewayEvent&)>* record);

  // Reads the certificates, so before the gateway gives its files away. One line for each destination with a
  // credential, in their order.
  Status use_credentials(std::vector<BrokerLine> lines);
  void drop_credentials();

  bool empty() const { return tunnels_.empty(); }
  void serve(boost::asio::ip::tcp::socket socket);
  void abort_all();
  std::function<void()> when_empty;

 private:
  friend class Tunnel;
  // One destination's way and what has gone over it so far.
  struct Route {
    explicit Route(Dialer way) : dialer(std::move(way)) {}
    Dialer dialer;
    std::unique_ptr<OwnTls> own_tls;  // with a credential
    std::uint64_t sent = 0;
    std::uint64_t received = 0;
  };
  boost::asio::io_context* context_;
  const GatewaySetup* setup_;
  const std::function<void(const GatewayEvent&)>* record_;
  std::map<const Destination*, Route> routes_;
  std::unordered_set<Tunnel*> tunnels_;
};

}  // namespace cofferdam::egress
