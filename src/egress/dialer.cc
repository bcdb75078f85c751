#include "egress/dialer.h"

#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <utility>

namespace cofferdam::egress {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;
using tcp = asio::ip::tcp;

bool allowed(const DialTarget& target, const asio::ip::address& address) {
  if (address.is_v4()) return address_allowed(target.rule, address.to_v4().to_bytes(), target.host);
  return address_allowed(target.rule, address.to_v6().to_bytes(), target.host);
}

}  // namespace

asio::awaitable<VendorFailure> Dialer::resolve() {
  error_code not_literal;
  std::vector<asio::ip::address> found{asio::ip::make_address(target_.host, not_literal)};
  if (not_literal) found = co_await names_->look_up(target_.host);
  std::vector<Endpoint> endpoints;
  for (const asio::ip::address& address : found) {
    // All or nothing: a name that points to the vendor and to somewhere inside is not a mistake to work
    // around.
    if (!allowed(target_, address)) co_return VendorFailure::address;
    endpoints.emplace_back(address, target_.port);
  }
  pinned_ = std::move(endpoints);
  co_return pinned_.empty() ? VendorFailure::unreachable : VendorFailure::none;
}

asio::awaitable<VendorFailure> Dialer::connect(boost::beast::tcp_stream* stream, const bool* cancelled) {
  if (pinned_.empty()) {
    VendorFailure failure = co_await resolve();
    if (*cancelled) co_return VendorFailure::cancelled;
    if (failure != VendorFailure::none) co_return failure;
  }
  // A copy: another request may drop the list while this one waits.
  std::vector<Endpoint> endpoints = pinned_;
  for (const Endpoint& endpoint : endpoints) {
    error_code ec;
    stream->socket().close(ec);  // of the address before; the next one may be of the other family
    stream->expires_after(target_.connect_limit);
    co_await stream->async_connect(endpoint, asio::redirect_error(asio::use_awaitable, ec));
    if (*cancelled) co_return VendorFailure::cancelled;
    if (ec) continue;
    stream->socket().set_option(tcp::no_delay(true), ec);
    co_return VendorFailure::none;
  }
  pinned_.clear();  // the next request asks again, and what it learns is checked again
  co_return VendorFailure::unreachable;
}

}  // namespace cofferdam::egress
