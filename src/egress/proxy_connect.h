// Asks the user's own HTTP proxy for a way to the vendor (RFC 9110, section 9.3.6). TLS inside it stays ours,
// so the proxy sees the vendor's name and nothing else.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <chrono>
#include <string>

#include "egress/vendor_failure.h"

namespace cofferdam::egress {

// `authority` is host:port, the port always said.
boost::asio::awaitable<VendorFailure> open_through_proxy(boost::beast::tcp_stream* stream,
                                                         std::string authority,
                                                         std::chrono::milliseconds limit,
                                                         const bool* cancelled);

}  // namespace cofferdam::egress
