#include "egress/proxy_connect.h"

#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/error.hpp>
#include <utility>

namespace cofferdam::egress {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

constexpr std::size_t kMaxProxyHead = 16U << 10U;

bool is_success(const std::string& head) {
  const bool version = head.rfind("HTTP/1.1 ", 0) == 0 || head.rfind("HTTP/1.0 ", 0) == 0;
  return version && head.size() > 12 && head[9] == '2' && (head[12] == ' ' || head[12] == '\r');
}

}  // namespace

asio::awaitable<VendorFailure> open_through_proxy(boost::beast::tcp_stream* stream, std::string authority,
                                                  std::chrono::milliseconds limit, const bool* cancelled) {
  const std::string request = "CONNECT " + authority + " HTTP/1.1\r\nHost: " + authority + "\r\n\r\n";
  error_code ec;
  stream->expires_after(limit);
  co_await asio::async_write(*stream, asio::buffer(request), asio::redirect_error(asio::use_awaitable, ec));
  std::string head;
  // What stands behind the head would belong to the vendor, who has not been
  // asked anything yet, so a proxy that sends more than its head is not understood.
  while (!ec && head.find("\r\n\r\n") == std::string::npos && head.size() < kMaxProxyHead) {
    std::size_t before = head.size();
    head.resize(before + 2048);
    std::size_t n = co_await stream->async_read_some(asio::buffer(head.data() + before, 2048),
                                                     asio::redirect_error(asio::use_awaitable, ec));
    head.resize(before + (ec ? 0 : n));
  }
  if (*cancelled) co_return VendorFailure::cancelled;
  const std::size_t end = head.find("\r\n\r\n");
  const bool whole = !ec && end != std::string::npos && end + 4 == head.size();
  co_return whole&& is_success(head) ? VendorFailure::none : VendorFailure::proxy;
}

}  // namespace cofferdam::egress
