// The vendor's place: TLS 1.3 on loopback, answers in the chunked coding. An event carries the time at which
// it was handed to TLS, so that whoever reads it knows how long it has been under way.
#include <signal.h>

#include <algorithm>
#include <array>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <cstdio>
#include <fstream>
#include <memory>
#include <string>

#include "bench/plan.h"
#include "bench/verbs.h"
#include "unit/egress/tls_vendor.h"

namespace cofferdam::bench {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;
using egress::testing::chunk;
using TlsStream = asio::ssl::stream<tcp::socket>;

constexpr std::size_t kBulkPiece = 64U << 10U;
constexpr std::string_view kHead =
    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\nCache-Control: no-cache\r\n"
    "Transfer-Encoding: chunked\r\n\r\n";

const std::string kLast = chunk({});

// As large as an event of a model that streams a few letters.
std::string event_text() {
  std::array<char, 32> digits{};
  std::snprintf(digits.data(), digits.size(), "%020llu", static_cast<unsigned long long>(now_ns()));
  return "event: content_block_delta\ndata: "
         "{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":"
         "\"text_delta\",\"text\":\"Hello\"}," +
         std::string(kTimeMark) + digits.data() + "\"}\n\n";
}

// Lines of a kilobyte, as events with long text are.
std::string bulk_piece() {
  const std::string head = "data: {\"type\":\"content_block_delta\",\"delta\":{\"text\":\"";
  const std::string line = head + std::string(1024 - head.size() - 5, 'x') + "\"}}\n\n";
  std::string out;
  while (out.size() < kBulkPiece) out += line;
  return chunk(out);
}

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(tcp::socket socket, asio::ssl::context* tls) : stream_(std::move(socket), *tls) {}
  asio::awaitable<void> run();

 private:
  asio::awaitable<bool> read_body(std::string* body);
  asio::awaitable<bool> stream(Plan plan);
  asio::awaitable<bool> bulk(std::uint64_t bytes);
  asio::awaitable<bool> send(const std::string& bytes);
  TlsStream stream_;
  std::string buffer_;
};

std::size_t length_in(std::string head) {
  std::transform(head.begin(), head.end(), head.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  const std::size_t at = head.find("content-length: ");
  return at == std::string::npos ? 0 : std::stoull(head.substr(at + 16));
}

asio::awaitable<bool> Connection::read_body(std::string* body) {
  std::size_t end = buffer_.find("\r\n\r\n");
  std::size_t wanted = 0;
  std::array<char, 16384> block;
  while (end == std::string::npos || buffer_.size() < wanted) {
    error_code ec;
    const std::size_t n =
        co_await stream_.async_read_some(asio::buffer(block), asio::redirect_error(asio::use_awaitable, ec));
    if (ec) co_return false;
    buffer_.append(block.data(), n);
    if (end == std::string::npos) end = buffer_.find("\r\n\r\n");
    if (end != std::string::npos) wanted = end + 4 + length_in(buffer_.substr(0, end + 2));
  }
  *body = buffer_.substr(end + 4, wanted - end - 4);
  buffer_.erase(0, wanted);
  co_return true;
}

asio::awaitable<bool> Connection::send(const std::string& bytes) {
  error_code ec;
  co_await asio::async_write(stream_, asio::buffer(bytes), asio::redirect_error(asio::use_awaitable, ec));
  co_return !ec;
}

// By the clock and not by pauses, so that a slow reader does not change the load.
asio::awaitable<bool> Connection::stream(Plan plan) {
  asio::steady_timer timer(stream_.get_executor());
  auto next = std::chrono::steady_clock::now();
  for (std::uint64_t i = 0; i < plan.events; ++i) {
    // Named, as everywhere that is waited: g++ 12 destroys a temporary of such an expression twice.
    std::string text = i == 0 ? std::string(kHead) : std::string();
    text += chunk(event_text());
    bool sent = co_await send(text);
    if (!sent) co_return false;
    next += std::chrono::microseconds(plan.interval_us);
    timer.expires_at(next);
    error_code ec;
    co_await timer.async_wait(asio::redirect_error(asio::use_awaitable, ec));
  }
  co_return co_await send(kLast);
}

asio::awaitable<bool> Connection::bulk(std::uint64_t bytes) {
  static const std::string kPiece = bulk_piece();
  const std::string head(kHead);
  bool sent = co_await send(head);
  error_code ec;
  for (std::uint64_t done = 0; sent && done < bytes; done += kBulkPiece) {
    co_await asio::async_write(stream_, asio::buffer(kPiece), asio::redirect_error(asio::use_awaitable, ec));
    sent = !ec;
  }
  if (!sent) co_return false;
  co_return co_await send(kLast);
}

asio::awaitable<void> Connection::run() {
  error_code ec;
  stream_.next_layer().set_option(tcp::no_delay(true), ec);
  co_await stream_.async_handshake(asio::ssl::stream_base::server,
                                   asio::redirect_error(asio::use_awaitable, ec));
  bool going = !ec;
  while (going) {
    std::string body;
    going = co_await read_body(&body);
    if (!going) co_return;
    const auto plan = find_plan(body);
    if (!plan.has_value()) co_return;
    if (plan->events > 0) {
      going = co_await stream(*plan);
    } else {
      going = co_await bulk(plan->bytes);
    }
  }
}

asio::awaitable<void> accept_all(tcp::acceptor* acceptor, asio::ssl::context* tls) {
  while (true) {
    error_code ec;
    tcp::socket socket(acceptor->get_executor());
    co_await acceptor->async_accept(socket, asio::redirect_error(asio::use_awaitable, ec));
    if (ec) co_return;
    auto connection = std::make_shared<Connection>(std::move(socket), tls);
    asio::co_spawn(
        acceptor->get_executor(),
        [](std::shared_ptr<Connection> self) -> asio::awaitable<void> { co_await self->run(); }(connection),
        asio::detached);
  }
}

}  // namespace

int upstream_main(const Options& options) {
  const egress::testing::Certificate certificate("IP:127.0.0.1,DNS:localhost");
  std::ofstream(options.text("ca")) << certificate.pem();
  asio::io_context context(1);
  asio::ssl::context tls(asio::ssl::context::tls_server);
  ::SSL_CTX_use_certificate(tls.native_handle(), certificate.x509());
  ::SSL_CTX_use_PrivateKey(tls.native_handle(), certificate.key());
  tcp::acceptor acceptor(context);
  acceptor.open(tcp::v4());
  acceptor.bind({asio::ip::address_v4::loopback(), 0});
  acceptor.listen(4096);
  std::printf("{\"port\": %u}\n", acceptor.local_endpoint().port());
  std::fflush(stdout);
  asio::signal_set signals(context, SIGTERM);
  signals.async_wait([&](error_code, int) { context.stop(); });
  asio::co_spawn(context, accept_all(&acceptor, &tls), asio::detached);
  context.run();
  return 0;
}

}  // namespace cofferdam::bench
