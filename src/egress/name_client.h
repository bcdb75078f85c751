// Names become addresses: in the gateway by asking the resolver, any number of look-ups at a time over one
// socket; in the broker, which has nothing hostile to wait for, by getaddrinfo(3) itself.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"

namespace cofferdam::egress {

class Names {
 public:
  virtual ~Names() = default;
  // Empty: no such name, or not in time.
  virtual boost::asio::awaitable<std::vector<boost::asio::ip::address>> look_up(std::string host) = 0;
};

// Blocks the thread; how long, resolv.conf(5) says.
class LocalNames final : public Names {
 public:
  boost::asio::awaitable<std::vector<boost::asio::ip::address>> look_up(std::string host) override;
};

class NameClient final : public Names {
 public:
  // Without a socket every look-up is empty: then no name is ever needed.
  NameClient(boost::asio::io_context* context, UniqueFd socket);
  NameClient(const NameClient&) = delete;
  NameClient& operator=(const NameClient&) = delete;
  Status start();

  // Empty also when the resolver is gone.
  boost::asio::awaitable<std::vector<boost::asio::ip::address>> look_up(std::string host) override;

 private:
  struct Waiter {
    explicit Waiter(boost::asio::io_context* context) : timer(*context) {}
    boost::asio::steady_timer timer;
    std::vector<boost::asio::ip::address> addresses;
  };
  boost::asio::awaitable<void> read_answers();
  bool take_answer();

  boost::asio::io_context* context_;
  UniqueFd unused_;
  boost::asio::posix::stream_descriptor socket_;
  std::uint64_t next_ = 0;
  std::map<std::uint64_t, std::shared_ptr<Waiter>> waiting_;
};

}  // namespace cofferdam::egress
