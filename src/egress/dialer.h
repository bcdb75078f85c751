// A TCP connection to one host: looked up by the resolver, checked, pinned, then tried address by address.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "egress/address.h"
#include "egress/name_client.h"
#include "egress/vendor_failure.h"

namespace cofferdam::egress {

struct DialTarget {
  std::string host;  // a name, or an address
  std::uint16_t port = 0;
  AddressRule rule;
  std::chrono::milliseconds connect_limit = std::chrono::seconds(5);  // for each address
};

class Dialer {
 public:
  Dialer(Names* names, DialTarget target) : names_(names), target_(std::move(target)) {}
  const DialTarget& target() const { return target_; }

  // Connects `stream`. Whoever sets `*cancelled` closes the stream too. The first call resolves; later ones
  // use what was checked then, until none of the addresses answers any more.
  boost::asio::awaitable<VendorFailure> connect(boost::beast::tcp_stream* stream, const bool* cancelled);

 private:
  using Endpoint = boost::asio::ip::tcp::endpoint;
  boost::asio::awaitable<VendorFailure> resolve();

  Names* names_;
  DialTarget target_;
  std::vector<Endpoint> pinned_;
};

}  // namespace cofferdam::egress
