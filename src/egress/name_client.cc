#include "egress/name_client.h"

#include <sys/socket.h>

#include <array>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cerrno>
#include <chrono>
#include <utility>

#include "egress/resolver.h"

namespace cofferdam::egress {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

constexpr auto kLookUpLimit = std::chrono::seconds(20);

}  // namespace

asio::awaitable<std::vector<asio::ip::address>> LocalNames::look_up(std::string host) {
  std::vector<asio::ip::address> out;
  for (const std::string& text : cofferdam::egress::look_up(host)) {
    error_code ec;
    asio::ip::address address = asio::ip::make_address(text, ec);
    if (!ec) out.push_back(address);
  }
  co_return out;
}

NameClient::NameClient(asio::io_context* context, UniqueFd socket)
    : context_(context), unused_(std::move(socket)), socket_(*context) {}

Status NameClient::start() {
  if (!unused_.valid()) return {};
  error_code ec;
  socket_.assign(unused_.release(), ec);
  if (ec) return make_error(Code::internal, "the resolver's socket: " + ec.message());
  asio::co_spawn(*context_, read_answers(), asio::detached);
  return {};
}

// False at the end of the socket, and when what comes is no answer: then nothing from it is believed.
bool NameClient::take_answer() {
  std::array<char, kMaxResolverMessage> buffer;
  ssize_t n = ::recv(socket_.native_handle(), buffer.data(), buffer.size(), MSG_DONTWAIT);
  if (n < 0) return errno == EAGAIN || errno == EINTR;
  if (n == 0) return false;
  auto answer = decode_resolver_answer({buffer.data(), static_cast<std::size_t>(n)});
  if (!answer) return false;
  auto found = waiting_.find(answer->id);
  if (found == waiting_.end()) return true;  // too late for whoever asked
  for (const std::string& text : answer->addresses) {
    error_code ec;
    auto address = asio::ip::make_address(text, ec);
    if (!ec && found->second->addresses.size() < kMaxAddresses) found->second->addresses.push_back(address);
  }
  found->second->timer.cancel();
  return true;
}

asio::awaitable<void> NameClient::read_answers() {
  error_code ec;
  while (!ec) {
    co_await socket_.async_wait(asio::posix::stream_descriptor::wait_read,
                                asio::redirect_error(asio::use_awaitable, ec));
    if (ec || !take_answer()) break;
  }
  socket_.close(ec);
  for (auto& [id, waiter] : waiting_) waiter->timer.cancel();
}

asio::awaitable<std::vector<asio::ip::address>> NameClient::look_up(std::string host) {
  if (!socket_.is_open()) co_return std::vector<asio::ip::address>();
  const std::uint64_t id = next_++;
  const std::string query = encode_resolver_query({id, std::move(host)});
  if (::send(socket_.native_handle(), query.data(), query.size(), MSG_DONTWAIT | MSG_NOSIGNAL) < 0) {
    co_return std::vector<asio::ip::address>();
  }
  auto waiter = std::make_shared<Waiter>(context_);
  waiting_[id] = waiter;
  waiter->timer.expires_after(kLookUpLimit);
  error_code ignored;
  co_await waiter->timer.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
  waiting_.erase(id);
  co_return std::move(waiter->addresses);
}

}  // namespace cofferdam::egress
