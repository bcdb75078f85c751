// One connection of the allow-list's listener, from its head to its event.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "egress/tunnel.h"

namespace cofferdam::egress {

inline constexpr std::size_t kTunnelBlock = 16U << 10U;
using TlsOver = boost::asio::ssl::stream<boost::beast::tcp_stream&>;

// The request as it goes out, up to and without its empty line: a proxy's own fields and those of the
// connection stay here, with a credential of ours the box's own too; nothing else is touched.
std::string plain_head(const RequestHead& head, const TunnelDecision& decision);

class Tunnel : public std::enable_shared_from_this<Tunnel> {
 public:
  Tunnel(TunnelHub* hub, boost::asio::ip::tcp::socket socket)
      : hub_(hub), client_(std::move(socket)), server_(*hub->context_) {
    hub_->tunnels_.insert(this);
  }
  Tunnel(const Tunnel&) = delete;
  Tunnel& operator=(const Tunnel&) = delete;
  ~Tunnel() {
    hub_->tunnels_.erase(this);
    if (hub_->tunnels_.empty() && hub_->when_empty) hub_->when_empty();
  }
  boost::asio::awaitable<void> run();
  void abort();

 private:
  enum class Side { box, outside };
  boost::asio::awaitable<bool> read_more();
  boost::asio::awaitable<bool> read_head();
  boost::asio::awaitable<void> serve(const RequestHead& head);
  boost::asio::awaitable<bool> open_tunnel();
  boost::asio::awaitable<std::string> dial();
  boost::asio::awaitable<bool> send_outside(std::string_view bytes);
  boost::asio::awaitable<void> pump(Side from);
  boost::asio::awaitable<void> carry();
  boost::asio::awaitable<void> fetch(const RequestHead& head);
  boost::asio::awaitable<std::string> shake_hands(TlsOver* tls);
  boost::asio::awaitable<std::string> set_credential(const RequestHead& head, std::string* request);
  boost::asio::awaitable<bool> hand_on(TlsOver* tls);
  boost::asio::awaitable<void> refuse(std::string rule, int status);
  bool count(Side from, std::size_t bytes);
  void close_both();
  void record(int status);

  TunnelHub* hub_;
  TunnelHub::Route* route_ = nullptr;
  TunnelDecision decision_;
  boost::beast::tcp_stream client_;
  boost::beast::tcp_stream server_;
  std::string buffer_;
  std::uint64_t credential_seq_ = 0;
  GatewayEvent event_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  bool cancelled_ = false;
  int open_pumps_ = 0;
};

}  // namespace cofferdam::egress
