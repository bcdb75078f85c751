// The gateway's side of the resolver: any number of look-ups at a time over one socket.
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

class NameClient {
 public:
  // Without a socket every look-up is empty: then no name is ever needed.
  NameClient(boost::asio::io_context* context, UniqueFd socket);
  NameClient(const NameClient&) = delete;
  NameClient& operator=(const NameClient&) = delete;
  Status start();

  // Empty: no such name, not in time, or the resolver is gone.
  boost::asio::awaitable<std::vector<boost::asio::ip::address>> look_up(std::string host);

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
