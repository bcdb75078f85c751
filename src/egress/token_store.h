// The credential that the gateway uses now, and its line to the broker that renews it.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstdint>
#include <memory>
#include <set>

#include "base/fd.h"
#include "base/result.h"
#include "egress/credential.h"

namespace cofferdam::egress {

// A broker's socket, and the first thing it said.
struct BrokerLine {
  UniqueFd socket;
  VendorCredential first;
};

// The broker's first message, which is there before the gateway is started.
Result<VendorCredential> receive_first_credential(int broker);

// One thread, as everything in the gateway. Must outlive the coroutines that wait in it.
class TokenStore {
 public:
  using Handle = std::shared_ptr<const VendorCredential>;
  // `broker`: descriptor of the private socket; owned from now on.
  static Result<std::unique_ptr<TokenStore>> create(boost::asio::io_context* context, VendorCredential first,
                                                    UniqueFd broker);

  // The newest one. Asks for a newer one ahead of its end, and waits for it when there is hardly any time
  // left or the vendor has rejected the one we have. Null: it has expired and the broker has nothing better.
  // It is always of the kind and the account of the first one: what the broker has of another is not taken.
  boost::asio::awaitable<Handle> current();
  // The vendor answered 401 to the credential of this number. Asked once for each.
  void rejected(std::uint64_t seq);
  void close();

 private:
  TokenStore(boost::asio::io_context* context, VendorCredential first);
  void listen();
  void receive();
  void ask(bool rejected);
  void settle();
  std::int64_t left_ms() const;

  Handle newest_;
  boost::asio::posix::stream_descriptor broker_;
  boost::asio::io_context* context_;
  std::set<boost::asio::steady_timer*> waiters_;  // each one's own, cancelled whenever an answer has come
  bool pending_ = false;                          // an answer of the broker is due
  std::uint64_t rejected_seq_ = 0;
  std::chrono::steady_clock::time_point next_ask_{};
};

}  // namespace cofferdam::egress
