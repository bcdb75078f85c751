// One connection from the box: requests read within bounds, decided, answered or relayed, put on record.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_set>

#include "egress/budget.h"
#include "egress/capture.h"
#include "egress/gateway.h"
#include "egress/gateway_setup.h"
#include "egress/http_head.h"
#include "egress/name_client.h"
#include "egress/policy.h"
#include "egress/relay.h"
#include "egress/token_store.h"
#include "egress/upstream.h"

namespace cofferdam::egress {

class Session;

// What all connections of this gateway share. One thread, so no locks.
struct Shared {
  const GatewaySetup* setup = nullptr;
  std::unique_ptr<NameClient> names;
  std::unique_ptr<Upstream> upstream;
  std::function<void(const GatewayEvent&)> record;
  std::unique_ptr<TokenStore> tokens;
  CaptureFile capture;
  std::uint64_t presences = 0;  // answered by the gateway itself
  Spent spent;
  std::size_t in_flight = 0;   // requests at the vendor
  std::size_t body_bytes = 0;  // of request bodies in memory
  std::unordered_set<Session*> sessions;
  std::function<void()> when_empty;  // called when the last session has ended; may be empty
};

// Holds part of Shared::body_bytes and gives it back.
class BodyLease {
 public:
  explicit BodyLease(Shared* shared) : shared_(shared) {}
  BodyLease(const BodyLease&) = delete;
  BodyLease& operator=(const BodyLease&) = delete;
  ~BodyLease() { resize(0); }
  // False when all bodies together would be too much; then nothing has changed.
  bool resize(std::size_t bytes);

 private:
  Shared* shared_;
  std::size_t held_ = 0;
};

class Session : public std::enable_shared_from_this<Session> {
 public:
  Session(Shared* shared, boost::asio::ip::tcp::socket socket);
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  ~Session();

  boost::asio::awaitable<void> run();
  // Ends it now; what is in flight still gets its event.
  void abort();

 private:
  struct Request;                          // one request on its way through
  struct Watch;                            // tells the watcher of the box's side that the request is over
  enum class Next { again, close, drop };  // drop: nothing more can be said on this connection

  boost::asio::awaitable<Next> serve_one();
  boost::asio::awaitable<bool> read_more();
  boost::asio::awaitable<bool> read_head(Request* request);
  boost::asio::awaitable<Next> serve_relayed(Request* request);
  boost::asio::awaitable<HttpRefusal> read_body(Request* request);
  boost::asio::awaitable<HttpRefusal> read_chunked(Request* request);
  boost::asio::awaitable<Next> refuse(Request* request, Decision decision, bool keep_alive);
  boost::asio::awaitable<Next> answer(Request* request, int status, std::string_view body, bool keep_alive);
  boost::asio::awaitable<Next> exchange(Request* request, std::string body, bool lowered);
  void account(Request* request, const Exchange& exchange);
  boost::asio::awaitable<Next> close_exchange(Request* request, const Exchange* exchange, bool lowered);
  boost::asio::awaitable<void> watch(std::shared_ptr<Watch> watch);
  boost::asio::awaitable<void> linger();
  void record(Request* request, std::string rule, int status);

  Shared* shared_;
  boost::beast::tcp_stream client_;
  std::string buffer_;    // read, not yet used
  Call* call_ = nullptr;  // of the request in flight
};

}  // namespace cofferdam::egress
