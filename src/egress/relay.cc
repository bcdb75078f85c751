#include "egress/relay.h"

#include <fmt/core.h>

#include <array>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/buffer_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <chrono>
#include <utility>

#include "egress/headers.h"

namespace cofferdam::egress {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using boost::system::error_code;

constexpr auto kSendLimit = std::chrono::seconds(120);
constexpr unsigned long kMaxRetryAfterSeconds = 60;
constexpr std::size_t kMaxAnswerHead = 64U << 10U;
constexpr std::size_t kChunk = 16U << 10U;

using Parser = http::response_parser<http::buffer_body>;

std::string lower_name(const Parser::value_type::value_type& field) {
  std::string name(field.name_string());
  for (char& c : name) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return name;
}

class Relay {
 public:
  Relay(beast::tcp_stream* client, const GatewaySetup* setup, RelayRequest* request, Call* call)
      : client_(client),
        setup_(setup),
        request_(request),
        call_(call),
        // A model may think for minutes before its first byte; vendors send pings while they stream.
        head_limit_(setup->policy.transport.head_ms),
        idle_limit_(setup->policy.transport.idle_ms),
        scanner_(UsageScanner::Form::none) {
    parser_.header_limit(kMaxAnswerHead);
    parser_.body_limit(setup->policy.transport.answer_bytes);
  }
  asio::awaitable<void> run(Upstream* upstream);
  Exchange exchange;

 private:
  asio::awaitable<VendorFailure> send();
  void release_body();
  asio::awaitable<VendorFailure> receive_head();
  VendorFailure judge_head() const;
  std::string head_for_client();
  bool may_tell(const std::string& name, const std::string& value) const;
  asio::awaitable<VendorFailure> stream_body();
  asio::awaitable<bool> pass_on(std::string_view bytes);
  asio::awaitable<bool> write_client(std::string_view bytes);

  beast::tcp_stream* client_;
  const GatewaySetup* setup_;
  RelayRequest* request_;
  Call* call_;
  std::chrono::milliseconds head_limit_;
  std::chrono::milliseconds idle_limit_;
  beast::flat_buffer buffer_{2 * kMaxAnswerHead};
  Parser parser_;
  UsageScanner scanner_;
  bool chunked_ = false;
};

void Relay::release_body() {
  request_->body = std::string();
  if (request_->sent) request_->sent();
}

asio::awaitable<VendorFailure> Relay::send() {
  Secret head = vendor_request_head(setup_->origin, request_->target, request_->fields, *request_->credential,
                                    request_->body.size());
  std::array<asio::const_buffer, 2> buffers{asio::buffer(head.view()), asio::buffer(request_->body)};
  error_code ec;
  call_->stream().next_layer().expires_after(kSendLimit);
  co_await asio::async_write(call_->stream(), buffers, asio::redirect_error(asio::use_awaitable, ec));
  // A thousand streams wait for their answers with nothing of their questions left in memory.
  release_body();
  if (call_->cancelled()) co_return VendorFailure::cancelled;
  co_return ec ? VendorFailure::reset : VendorFailure::none;
}

asio::awaitable<VendorFailure> Relay::receive_head() {
  error_code ec;
  call_->stream().next_layer().expires_after(head_limit_);
  co_await http::async_read_header(call_->stream(), buffer_, parser_,
                                   asio::redirect_error(asio::use_awaitable, ec));
  if (call_->cancelled()) co_return VendorFailure::cancelled;
  if (ec == beast::error::timeout) co_return VendorFailure::timeout;
  if (ec == http::error::body_limit) co_return VendorFailure::too_large;
  // What the parser says about bytes is one category, what the connection says is another.
  bool garbage = ec.category() == make_error_code(http::error::bad_version).category() &&
                 ec != http::error::end_of_stream && ec != http::error::partial_message;
  if (ec) co_return garbage ? VendorFailure::protocol : VendorFailure::reset;
  co_return judge_head();
}

VendorFailure Relay::judge_head() const {
  const auto& answer = parser_.get();
  unsigned status = answer.result_int();
  if (status >= 300 && status < 400) return VendorFailure::redirect;
  if (status < 200 || status > 599) return VendorFailure::protocol;
  // We asked for identity, and the box is not told of any coding.
  auto coding = answer.find(http::field::content_encoding);
  bool coded = coding != answer.end() && !beast::iequals(coding->value(), "identity");
  return coded ? VendorFailure::protocol : VendorFailure::none;
}

// Codex sleeps for as long as it is told, without a word: a day, if the vendor says so. What is longer than a
// client should wait is kept for the record, and the client ends after its own few tries. Claude Code decides
// by itself that such a wait is too long.
bool Relay::may_tell(const std::string& name, const std::string& value) const {
  if (!response_field_allowed(name) || !is_plain_value(value)) return false;
  if (name != "retry-after" || setup_->policy.vendor != contract::Vendor::openai) return true;
  const bool seconds =
      !value.empty() && value.size() <= 2 && value.find_first_not_of("0123456789") == std::string::npos;
  return seconds && std::stoul(value) <= kMaxRetryAfterSeconds;
}

std::string Relay::head_for_client() {
  const auto& answer = parser_.get();
  exchange.status = static_cast<int>(answer.result_int());
  scanner_ = UsageScanner(UsageScanner::form_of(std::string(answer[http::field::content_type])));
  std::string head = fmt::format("HTTP/1.1 {} {}\r\n", exchange.status, reason_phrase(exchange.status));
  for (const auto& field : answer) {
    std::string name = lower_name(field);
    std::string value(field.value());
    if (name == "retry-after" && is_plain_value(value)) exchange.retry_after = value;
    if (may_tell(name, value)) head += fmt::format("{}: {}\r\n", name, value);
  }
  auto length = parser_.content_length();
  bool empty = parser_.is_done();
  chunked_ = !length.has_value() && !empty;
  if (exchange.status != 204 && !chunked_) {
    head += fmt::format("content-length: {}\r\n", empty ? 0 : *length);
  }
  if (chunked_) head += "transfer-encoding: chunked\r\n";
  head += request_->keep_alive ? "connection: keep-alive\r\n\r\n" : "connection: close\r\n\r\n";
  return head;
}

asio::awaitable<bool> Relay::write_client(std::string_view bytes) {
  error_code ec;
  client_->expires_after(idle_limit_);
  co_await asio::async_write(*client_, asio::buffer(bytes), asio::redirect_error(asio::use_awaitable, ec));
  client_->expires_never();
  co_return !ec;
}

// The next read from the vendor waits for this write: the box's pace is the vendor's pace.
asio::awaitable<bool> Relay::pass_on(std::string_view bytes) {
  exchange.response_bytes += bytes.size();
  scanner_.feed(bytes);
  if (request_->answer != nullptr) request_->answer->add(bytes);
  if (!chunked_) co_return co_await write_client(bytes);
  std::string size = fmt::format("{:x}\r\n", bytes.size());
  constexpr std::string_view end = "\r\n";
  std::array<asio::const_buffer, 3> buffers{asio::buffer(size), asio::buffer(bytes), asio::buffer(end)};
  error_code ec;
  client_->expires_after(idle_limit_);
  co_await asio::async_write(*client_, buffers, asio::redirect_error(asio::use_awaitable, ec));
  client_->expires_never();
  co_return !ec;
}

asio::awaitable<VendorFailure> Relay::stream_body() {
  std::array<char, kChunk> chunk;
  // Beast reads no more at a time than its buffer has room for, and after a head that is 512 bytes.
  buffer_.reserve(kChunk);
  while (!parser_.is_done()) {
    auto& body = parser_.get().body();
    body.data = chunk.data();
    body.size = chunk.size();
    error_code ec;
    call_->stream().next_layer().expires_after(idle_limit_);
    co_await http::async_read_some(call_->stream(), buffer_, parser_,
                                   asio::redirect_error(asio::use_awaitable, ec));
    if (call_->cancelled()) co_return VendorFailure::cancelled;
    if (ec == http::error::need_buffer) ec = {};
    std::size_t got = chunk.size() - parser_.get().body().size;
    if (got > 0) {
      bool written = co_await pass_on({chunk.data(), got});
      if (!written) co_return VendorFailure::cancelled;
    }
    if (ec == http::error::body_limit) co_return VendorFailure::too_large;
    if (ec == beast::error::timeout) co_return VendorFailure::timeout;
    if (ec) co_return VendorFailure::reset;
  }
  if (chunked_) {
    bool written = co_await write_client("0\r\n\r\n");
    if (!written) co_return VendorFailure::cancelled;
  }
  co_return VendorFailure::none;
}

asio::awaitable<void> Relay::run(Upstream* upstream) {
  exchange.failure = co_await upstream->connect(call_);
  // Never sent twice: what has gone out may have been heard and charged for, whatever became of the answer.
  // The CLIs try again by themselves, and each of their tries is on record.
  exchange.asked = exchange.failure == VendorFailure::none;
  if (exchange.asked) exchange.failure = co_await send();
  if (exchange.failure == VendorFailure::none) exchange.failure = co_await receive_head();
  if (exchange.failure != VendorFailure::none) co_return;
  std::string head = head_for_client();
  bool written = co_await write_client(head);
  if (!written) {
    exchange.failure = VendorFailure::cancelled;
    co_return;
  }
  exchange.failure = co_await stream_body();
  exchange.complete = exchange.failure == VendorFailure::none;
  if (exchange.complete && parser_.keep_alive() && buffer_.size() == 0) upstream->keep(call_);
  scanner_.finish();
  exchange.usage = scanner_.usage();
  exchange.usage_is_final = scanner_.is_final();
}

}  // namespace

asio::awaitable<Exchange> relay(beast::tcp_stream* client, Upstream* upstream, const GatewaySetup* setup,
                                RelayRequest* request, Call* call) {
  Relay relay(client, setup, request, call);
  co_await relay.run(upstream);
  co_return relay.exchange;
}

}  // namespace cofferdam::egress
