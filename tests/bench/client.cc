// The load: N connections that post and read their streamed answers again and again, each over the connection
// it has. The first round connects and warms up; the others are counted.
#include <algorithm>
#include <array>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "bench/plan.h"
#include "bench/verbs.h"
#include "egress/chunked.h"

namespace cofferdam::bench {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

struct Load {
  std::uint16_t port = 0;         // of what is measured
  std::uint16_t target_port = 0;  // of the upstream, when a tunnel is asked for
  bool tls = false;
  bool tunnel = false;
  std::uint64_t streams = 1;
  std::uint64_t rounds = 2;
  std::uint64_t spread_us = 0;  // in which the connections begin, one after another
  std::string request;
};

struct Results {
  std::vector<std::uint64_t> delays_ns;      // of events
  std::vector<std::uint64_t> first_byte_ns;  // from the request to the answer's first event
  std::uint64_t bytes = 0;
  std::uint64_t answers = 0;
  std::uint64_t errors = 0;
  std::string first_error;
  std::uint64_t start_ns = 0;  // of the first request that is counted
  std::uint64_t end_ns = 0;

  void fail(const std::string& what) {
    if (errors++ == 0) first_error = what;
  }
};

// One answer as it arrives: its head, its chunks, the times in its events.
class Answer {
 public:
  Answer(std::uint64_t sent_ns, bool counted, Results* results)
      : sent_ns_(sent_ns), counted_(counted), results_(results) {}
  enum class State { more, done, bad };
  State feed(std::string_view bytes, std::uint64_t now);

 private:
  void read_events(std::uint64_t now);
  std::uint64_t sent_ns_;
  bool counted_;
  Results* results_;
  bool in_body_ = false;
  bool first_ = true;
  std::string raw_;
  std::string body_;
  egress::ChunkedDecoder decoder_;
};

void Answer::read_events(std::uint64_t now) {
  std::size_t used = 0;
  if (first_ && !body_.empty() && counted_) results_->first_byte_ns.push_back(now - sent_ns_);
  first_ = first_ && body_.empty();
  for (std::size_t at = body_.find(kTimeMark); at != std::string::npos; at = body_.find(kTimeMark, used)) {
    if (body_.size() < at + kTimeMark.size() + kTimeDigits) break;
    const std::uint64_t then = std::strtoull(body_.c_str() + at + kTimeMark.size(), nullptr, 10);
    if (counted_) results_->delays_ns.push_back(now - then);
    used = at + kTimeMark.size() + kTimeDigits;
  }
  if (counted_) results_->bytes += body_.size();
  // A mark that is not whole yet has to be found again.
  const std::size_t kept = std::min(body_.size() - used, kTimeMark.size() + kTimeDigits);
  if (counted_) results_->bytes -= kept;
  body_.erase(0, body_.size() - kept);
}

Answer::State Answer::feed(std::string_view bytes, std::uint64_t now) {
  raw_.append(bytes);
  if (!in_body_) {
    const std::size_t end = raw_.find("\r\n\r\n");
    if (end == std::string::npos) return State::more;
    if (raw_.compare(0, 12, "HTTP/1.1 200") != 0) {
      results_->fail(raw_.substr(0, raw_.find('\r')));
      return State::bad;
    }
    raw_.erase(0, end + 4);
    in_body_ = true;
  }
  std::size_t taken = 0;
  const auto verdict = decoder_.feed(raw_, &body_, &taken);
  raw_.erase(0, taken);
  read_events(now);
  if (verdict == egress::ChunkedDecoder::Verdict::bad) {
    results_->fail("not the chunked coding");
    return State::bad;
  }
  return verdict == egress::ChunkedDecoder::Verdict::done ? State::done : State::more;
}

template <class Stream>
asio::awaitable<bool> ask(Stream* stream, const Load* load, bool counted, Results* results) {
  std::vector<char> block(64U << 10U);
  error_code ec;
  const std::uint64_t sent = now_ns();
  if (counted && results->start_ns == 0) results->start_ns = sent;
  co_await asio::async_write(*stream, asio::buffer(load->request),
                             asio::redirect_error(asio::use_awaitable, ec));
  Answer answer(sent, counted, results);
  auto state = Answer::State::more;
  while (!ec && state == Answer::State::more) {
    const std::size_t n =
        co_await stream->async_read_some(asio::buffer(block), asio::redirect_error(asio::use_awaitable, ec));
    if (!ec) state = answer.feed({block.data(), n}, now_ns());
  }
  if (ec) results->fail(ec.message());
  if (state == Answer::State::done && counted) {
    ++results->answers;
    results->end_ns = now_ns();
  }
  co_return state == Answer::State::done;
}

template <class Stream>
asio::awaitable<void> converse(Stream* stream, const Load* load, Results* results) {
  for (std::uint64_t round = 0; round < load->rounds; ++round) {
    bool answered = co_await ask(stream, load, round > 0, results);
    if (!answered) co_return;
  }
}

asio::awaitable<bool> open_tunnel(tcp::socket* socket, const Load* load) {
  const std::string authority = "127.0.0.1:" + std::to_string(load->target_port);
  const std::string text = "CONNECT " + authority + " HTTP/1.1\r\nHost: " + authority + "\r\n\r\n";
  error_code ec;
  co_await asio::async_write(*socket, asio::buffer(text), asio::redirect_error(asio::use_awaitable, ec));
  std::string answer;
  while (!ec && answer.find("\r\n\r\n") == std::string::npos) {
    char byte = 0;  // what stands behind the head is the tunnel's
    co_await socket->async_read_some(asio::buffer(&byte, 1), asio::redirect_error(asio::use_awaitable, ec));
    answer += byte;
  }
  co_return !ec && answer.substr(8, 4) == " 200";
}

asio::awaitable<void> run_one(std::uint64_t index, const Load* load, asio::ssl::context* tls,
                              Results* results) {
  auto executor = co_await asio::this_coro::executor;
  asio::steady_timer timer(executor);
  error_code ec;
  timer.expires_after(std::chrono::microseconds(load->spread_us * index / load->streams));
  co_await timer.async_wait(asio::redirect_error(asio::use_awaitable, ec));
  asio::ssl::stream<tcp::socket> stream(executor, *tls);
  tcp::socket& socket = stream.next_layer();
  co_await socket.async_connect({asio::ip::address_v4::loopback(), load->port},
                                asio::redirect_error(asio::use_awaitable, ec));
  if (ec) co_return results->fail("connect: " + ec.message());
  socket.set_option(tcp::no_delay(true), ec);
  if (load->tunnel) {
    bool open = co_await open_tunnel(&socket, load);
    if (!open) co_return results->fail("no tunnel");
  }
  if (!load->tls) co_return co_await converse(&socket, load, results);
  co_await stream.async_handshake(asio::ssl::stream_base::client,
                                  asio::redirect_error(asio::use_awaitable, ec));
  if (ec) co_return results->fail("TLS: " + ec.message());
  co_await converse(&stream, load, results);
}

Load load_from(const Options& options) {
  Load load;
  load.port = static_cast<std::uint16_t>(options.number("port", 0));
  load.target_port = static_cast<std::uint16_t>(options.number("target-port", 0));
  load.tunnel = options.text("via") == "connect";
  load.tls = load.tunnel || options.text("via") == "tls";
  load.streams = options.number("streams", 1);
  load.rounds = options.number("rounds", 2);
  load.spread_us = options.number("spread-us", 0);
  std::ifstream in(options.text("body"), std::ios::binary);
  std::ostringstream body;
  body << in.rdbuf();
  std::string text = body.str();
  constexpr std::string_view hole = "@PLAN@";
  const std::size_t at = text.find(hole);
  if (at == std::string::npos) throw std::runtime_error("the body has no place for the plan");
  text.replace(
      at, hole.size(),
      plan_text({options.number("events", 0), options.number("interval-us", 0), options.number("bytes", 0)}));
  load.request =
      "POST /v1/messages?beta=true HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
      "anthropic-version: 2023-06-01\r\nx-api-key: sk-placeholder\r\nAccept: text/event-stream\r\n"
      "Content-Length: " +
      std::to_string(text.size()) + "\r\n\r\n" + text;
  return load;
}

double part_us(std::vector<std::uint64_t>* values, double part) {
  if (values->empty()) return 0;
  std::sort(values->begin(), values->end());
  const auto last = static_cast<double>(values->size() - 1);
  return static_cast<double>((*values)[static_cast<std::size_t>(last * part + 0.5)]) / 1000;
}

void print(Results* results) {
  const double seconds = static_cast<double>(results->end_ns - results->start_ns) / 1e9;
  std::printf(
      "{\"events\": %zu, \"delay_p50_us\": %.1f, \"delay_p99_us\": %.1f, \"first_byte_p50_us\": %.1f, "
      "\"first_byte_p99_us\": %.1f, \"bytes\": %llu, \"seconds\": %.3f, \"answers\": %llu, \"errors\": %llu, "
      "\"first_error\": \"%s\"}\n",
      results->delays_ns.size(), part_us(&results->delays_ns, 0.5), part_us(&results->delays_ns, 0.99),
      part_us(&results->first_byte_ns, 0.5), part_us(&results->first_byte_ns, 0.99),
      static_cast<unsigned long long>(results->bytes), seconds,
      static_cast<unsigned long long>(results->answers), static_cast<unsigned long long>(results->errors),
      results->first_error.c_str());
}

}  // namespace

int client_main(const Options& options) {
  const Load load = load_from(options);
  asio::io_context context(1);
  asio::ssl::context tls(asio::ssl::context::tls_client);
  tls.load_verify_file(options.text("ca"));
  tls.set_verify_mode(asio::ssl::verify_peer);
  Results results;
  for (std::uint64_t i = 0; i < load.streams; ++i) {
    asio::co_spawn(context, run_one(i, &load, &tls, &results), asio::detached);
  }
  // A proxy that hangs is a finding, not a reason to hang.
  const std::chrono::seconds limit(options.number("limit-s", 120));
  context.run_for(limit);
  if (!context.stopped()) results.fail("not done in time");
  print(&results);
  return 0;
}

}  // namespace cofferdam::bench
