#include "egress/session.h"

#include <fmt/core.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <cerrno>
#include <utility>

#include "base/text.h"
#include "egress/body_policy.h"
#include "egress/chunked.h"
#include "egress/headers.h"

namespace cofferdam::egress {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;
using Clock = std::chrono::steady_clock;

constexpr auto kHeadLimit = std::chrono::seconds(60);  // for a whole head, and for idling before it
constexpr auto kBodyLimit = std::chrono::seconds(120);
constexpr auto kAnswerLimit = std::chrono::seconds(60);
constexpr auto kLingerLimit = std::chrono::seconds(2);
// The CLI asks once or twice whether anybody is there; each answer is an event.
constexpr std::uint64_t kMaxPresences = 100;
constexpr std::size_t kReadBytes = 16U << 10U;
// Of all bodies at a time: 64 connections with 32 MiB each would be 2 GiB, and a policy may allow more of
// them.
constexpr std::size_t kMaxBodyTotal = 128U << 20U;

std::string answer_head(int status, std::size_t body_bytes, bool keep_alive) {
  return fmt::format(
      "HTTP/1.1 {} {}\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: {}\r\n\r\n",
      status, reason_phrase(status), body_bytes, keep_alive ? "keep-alive" : "close");
}

}  // namespace

bool BodyLease::resize(std::size_t bytes) {
  std::size_t others = shared_->body_bytes - held_;
  if (bytes > held_ && others + bytes > kMaxBodyTotal) return false;
  shared_->body_bytes = others + bytes;
  held_ = bytes;
  return true;
}

struct Session::Request {
  explicit Request(Shared* shared) : lease(shared) {}
  RequestHead head;
  Decision route;
  std::string body;
  BodyLease lease;
  GatewayEvent event;
  Clock::time_point start;
  std::optional<CapturedExchange> captured;
  std::shared_ptr<const VendorCredential> credential;  // that was shown to the vendor
  std::uint64_t body_bytes = 0;                        // as forwarded
  std::uint64_t max_output = 0;
};

struct Session::Watch {
  bool over = false;
};

Session::Session(Shared* shared, asio::ip::tcp::socket socket) : shared_(shared), client_(std::move(socket)) {
  shared_->sessions.insert(this);
  error_code ignored;
  client_.socket().set_option(asio::ip::tcp::no_delay(true), ignored);
}

Session::~Session() {
  shared_->sessions.erase(this);
  if (shared_->sessions.empty() && shared_->when_empty) shared_->when_empty();
}

void Session::abort() {
  client_.close();
  if (call_ != nullptr) call_->cancel();
}

void Session::record(Request* request, std::string rule, int status) {
  GatewayEvent& event = request->event;
  event.method = request->head.method;
  event.path = printable(request->head.target, 500);
  event.rule = std::move(rule);
  event.status = status;
  auto took = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - request->start);
  event.took_ms = static_cast<std::uint64_t>(took.count());
  shared_->record(event);
  if (!request->captured.has_value()) return;
  std::vector<std::string_view> secrets;
  if (request->credential) secrets = {request->credential->token.view(), request->credential->account_id};
  shared_->capture.append(encode_capture(event, *request->captured, secrets));
}

asio::awaitable<bool> Session::read_more() {
  std::size_t before = buffer_.size();
  buffer_.resize(before + kReadBytes);
  error_code ec;
  std::size_t n = co_await client_.async_read_some(asio::buffer(buffer_.data() + before, kReadBytes),
                                                   asio::redirect_error(asio::use_awaitable, ec));
  buffer_.resize(before + (ec ? 0 : n));
  co_return !ec && n > 0;
}

// Leaves the head's bytes at the front of the buffer. False: nobody asked for anything, or not in time.
asio::awaitable<bool> Session::read_head(Request* request) {
  client_.expires_after(kHeadLimit);
  while (find_head_end(buffer_) == std::string::npos && buffer_.size() <= kMaxHeadBytes) {
    bool more = co_await read_more();
    if (more) continue;
    request->start = Clock::now();
    // A connection that was merely idle is nothing to report; half a request is.
    request->event.denied = !buffer_.empty();
    if (!buffer_.empty()) record(request, "http: incomplete head", 0);
    co_return false;
  }
  request->start = Clock::now();
  co_return true;
}

asio::awaitable<Session::Next> Session::serve_one() {
  Request request(shared_);
  bool asked = co_await read_head(&request);
  if (!asked) co_return Next::drop;
  std::size_t head_bytes = std::min(find_head_end(buffer_), buffer_.size());
  ParsedHead parsed = parse_request_head(std::string_view(buffer_).substr(0, head_bytes));
  buffer_.erase(0, head_bytes);
  request.head = std::move(parsed.head);
  request.event.request_bytes = head_bytes;
  if (parsed.refusal) {
    Decision refusal = deny(parsed.refusal->rule, {}, parsed.refusal->status);
    co_return co_await refuse(&request, std::move(refusal), false);
  }
  const RequestHead& head = request.head;
  Decision decision = decide_route(shared_->setup->policy,
                                   {head.method, head.path, head.query, head.has_query, head.upgrade});
  if (decision.action == Action::relay) {
    if (auto denial = decide_fields(shared_->setup->policy, head)) decision = *std::move(denial);
  }
  if (decision.action == Action::deny) co_return co_await refuse(&request, std::move(decision), false);
  if (decision.action == Action::answer_ok && ++shared_->presences > kMaxPresences) {
    decision = deny(kPresenceRule);
    co_return co_await refuse(&request, std::move(decision), false);
  }
  if (decision.action == Action::answer_ok) {
    bool keep_alive = head.keep_alive && head.framing == Framing::none;
    record(&request, decision.rule, 200);
    co_return co_await answer(&request, 200, {}, keep_alive);
  }
  request.route = std::move(decision);
  co_return co_await serve_relayed(&request);
}

asio::awaitable<Session::Next> Session::serve_relayed(Request* request) {
  HttpRefusal refusal = co_await read_body(request);
  if (refusal.status == 0) {
    request->event.denied = true;
    record(request, refusal.rule, 0);
    co_return Next::drop;
  }
  if (!refusal.rule.empty()) {
    Decision decision = deny(refusal.rule, {}, refusal.status);
    co_return co_await refuse(request, std::move(decision), false);
  }
  BodyVerdict verdict = judge_body(shared_->setup->policy, request->body);
  if (shared_->capture.enabled()) {
    const bool denied = verdict.decision.action == Action::deny;
    request->captured.emplace().request.add(denied ? request->body : verdict.body);
  }
  request->body = std::string();
  Decision decision = std::move(verdict.decision);
  // Numbers can be longer as we write them.
  const bool fits = verdict.body.size() <= kMaxBodyBytes && request->lease.resize(verdict.body.size());
  if (decision.action != Action::deny && !fits) decision = deny("http: body too large", {}, 413);
  if (decision.action != Action::deny) {
    decision = decide_spending(shared_->setup->policy, shared_->spent, shared_->in_flight);
  }
  if (decision.action == Action::deny)
    co_return co_await refuse(request, std::move(decision), request->head.keep_alive);
  request->body_bytes = verdict.body.size();
  request->max_output = verdict.max_output;
  ++shared_->spent.requests;
  ++shared_->in_flight;
  co_return co_await exchange(request, std::move(verdict.body), verdict.max_tokens_lowered);
}

// An empty rule means that the body is there; status 0, that the box stopped sending.
asio::awaitable<HttpRefusal> Session::read_body(Request* request) {
  const RequestHead& head = request->head;
  if (head.framing == Framing::none) co_return HttpRefusal{411, "http: no body"};
  if (head.content_length > kMaxBodyBytes) co_return HttpRefusal{413, "http: body too large"};
  if (!request->lease.resize(head.content_length))
    co_return HttpRefusal{503, "http: too many bodies at a time"};
  client_.expires_after(kBodyLimit);
  if (head.expect_continue) {
    constexpr std::string_view go_on = "HTTP/1.1 100 Continue\r\n\r\n";
    error_code ec;
    co_await asio::async_write(client_, asio::buffer(go_on), asio::redirect_error(asio::use_awaitable, ec));
    if (ec) co_return HttpRefusal{0, "http: incomplete body"};
  }
  if (head.framing == Framing::chunked) co_return co_await read_chunked(request);
  while (buffer_.size() < head.content_length) {
    bool more = co_await read_more();
    if (!more) co_return HttpRefusal{0, "http: incomplete body"};
  }
  request->body.assign(buffer_, 0, head.content_length);
  buffer_.erase(0, head.content_length);
  buffer_.shrink_to_fit();
  request->event.request_bytes += head.content_length;
  co_return HttpRefusal{200, {}};
}

asio::awaitable<HttpRefusal> Session::read_chunked(Request* request) {
  ChunkedDecoder decoder;
  while (true) {
    std::size_t taken = 0;
    auto verdict = decoder.feed(buffer_, &request->body, &taken);
    buffer_.erase(0, taken);
    request->event.request_bytes += taken;
    if (verdict == ChunkedDecoder::Verdict::bad) co_return HttpRefusal{400, "http: chunked"};
    if (request->body.size() > kMaxBodyBytes) co_return HttpRefusal{413, "http: body too large"};
    if (!request->lease.resize(request->body.size())) {
      co_return HttpRefusal{503, "http: too many bodies at a time"};
    }
    if (verdict == ChunkedDecoder::Verdict::done) co_return HttpRefusal{200, {}};
    bool more = co_await read_more();
    if (!more) co_return HttpRefusal{0, "http: incomplete body"};
  }
}

// On record first: whoever reads the answer can already find the reason in the account.
asio::awaitable<Session::Next> Session::refuse(Request* request, Decision decision, bool keep_alive) {
  request->event.denied = true;
  request->event.limit = decision.limit;
  std::string body = decision.status == 429 ? parallel_body() : denial_body(decision);
  request->event.response_bytes = body.size();
  if (request->captured.has_value()) request->captured->answer.add(body);
  record(request, decision.rule, decision.status);
  co_return co_await answer(request, decision.status, body, keep_alive);
}

asio::awaitable<Session::Next> Session::answer(Request* request, int status, std::string_view body,
                                               bool keep_alive) {
  std::string text = answer_head(status, body.size(), keep_alive);
  if (request->head.method != "HEAD") text += body;
  error_code ec;
  client_.expires_after(kAnswerLimit);
  co_await asio::async_write(client_, asio::buffer(text), asio::redirect_error(asio::use_awaitable, ec));
  if (ec) co_return Next::drop;
  co_return keep_alive ? Next::again : Next::close;
}

// While the vendor is asked, nothing is read from the box; only this sees that the box has hung up.
asio::awaitable<void> Session::watch(std::shared_ptr<Watch> watch) {
  while (!watch->over) {
    error_code ec;
    co_await client_.socket().async_wait(asio::ip::tcp::socket::wait_read,
                                         asio::redirect_error(asio::use_awaitable, ec));
    if (watch->over) co_return;
    char byte = 0;
    ssize_t n = ec ? 0 : ::recv(client_.socket().native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    if (n > 0) co_return;  // the next request is waiting: the box is there
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    if (call_ != nullptr) call_->cancel();
    co_return;
  }
}

asio::awaitable<Session::Next> Session::exchange(Request* request, std::string body, bool lowered) {
  TokenStore::Handle credential = co_await shared_->tokens->current();
  if (!credential) {
    --shared_->in_flight;
    co_return co_await refuse(request, deny("login expired"), request->head.keep_alive);
  }
  RelayRequest relayed{request->route.target,
                       vendor_fields(shared_->setup->policy, request->head),
                       std::move(body),
                       request->head.keep_alive,
                       {},
                       credential,
                       request->captured.has_value() ? &request->captured->answer : nullptr};
  request->credential = credential;
  request->lease.resize(relayed.body.size());
  relayed.sent = [request] { request->lease.resize(0); };
  Call call;
  call_ = &call;
  auto over = std::make_shared<Watch>();
  auto self = shared_from_this();
  client_.expires_never();
  asio::co_spawn(
      client_.get_executor(),
      [](std::shared_ptr<Session> session, std::shared_ptr<Watch> state) -> asio::awaitable<void> {
        co_await session->watch(state);
      }(self, over),
      asio::detached);
  Exchange result = co_await relay(&client_, shared_->upstream.get(), shared_->setup, &relayed, &call);
  over->over = true;
  call_ = nullptr;
  --shared_->in_flight;
  // The answer goes through as it is; what asks next gets a newer credential if there is one.
  if (result.status == 401) shared_->tokens->rejected(credential->seq);
  error_code ignored;
  if (client_.socket().is_open())
    client_.socket().cancel(ignored);  // the watcher's wait; nothing else is pending
  co_return co_await close_exchange(request, &result, lowered);
}

// What the vendor counted, on record and against the budgets.
void Session::account(Request* request, const Exchange& exchange) {
  GatewayEvent& event = request->event;
  event.response_bytes = exchange.response_bytes;
  event.retry_after = exchange.retry_after;
  event.input_tokens = exchange.usage.input;
  event.output_tokens = exchange.usage.output;
  event.cache_read_tokens = exchange.usage.cache_read;
  event.cache_write_tokens = exchange.usage.cache_write;
  const auto& price = shared_->setup->policy.price;
  if (price.has_value()) event.cost_micros = cost_micros(*price, exchange.usage);
  // Left by the box, or ended without a word on it: then the budgets are charged with the most that it can
  // have been.
  const bool left = exchange.failure == VendorFailure::cancelled && exchange.asked && exchange.status < 400;
  const bool silent = exchange.complete && exchange.status < 300;
  if ((left || silent) && !exchange.usage_is_final) {
    const TokenUsage more = unheard(exchange.usage, request->body_bytes, request->max_output);
    event.uncounted_tokens = more.input + more.output;
    if (price.has_value()) event.uncounted_micros = cost_micros(*price, more);
  }
  shared_->spent.tokens += event.input_tokens + event.output_tokens + event.uncounted_tokens;
  shared_->spent.cost_micros += event.cost_micros + event.uncounted_micros;
}

asio::awaitable<Session::Next> Session::close_exchange(Request* request, const Exchange* exchange,
                                                       bool lowered) {
  std::string rule = request->route.rule;
  std::string notes = lowered ? "max_tokens lowered" : "";
  if (exchange->failure != VendorFailure::none) {
    notes += notes.empty() ? "" : ", ";
    notes += failure_name(exchange->failure);
    request->event.failure = failure_name(exchange->failure);
  }
  if (!notes.empty()) rule += " (" + notes + ")";
  request->event.limit = exchange->failure == VendorFailure::too_large;
  account(request, *exchange);
  if (exchange->complete) {
    record(request, std::move(rule), exchange->status);
    co_return request->head.keep_alive ? Next::again : Next::close;
  }
  if (exchange->failure == VendorFailure::cancelled || exchange->status != 0) {
    // Cut off in the middle: the missing end is how the box learns of it.
    record(request, std::move(rule), exchange->status);
    co_return Next::drop;
  }
  int status = exchange->failure == VendorFailure::timeout ? 504 : 502;
  std::string body = vendor_failure_body(failure_name(exchange->failure));
  request->event.response_bytes = body.size();
  record(request, std::move(rule), status);
  co_return co_await answer(request, status, body, request->head.keep_alive);
}

// Closing with unread bytes in the socket would reset the connection and could take the answer with it.
asio::awaitable<void> Session::linger() {
  error_code ec;
  client_.socket().shutdown(asio::ip::tcp::socket::shutdown_send, ec);
  client_.expires_after(kLingerLimit);
  std::array<char, 4096> sink;
  while (!ec) {
    co_await client_.async_read_some(asio::buffer(sink), asio::redirect_error(asio::use_awaitable, ec));
  }
}

asio::awaitable<void> Session::run() {
  Next next = Next::again;
  while (next == Next::again) next = co_await serve_one();
  if (next == Next::close) co_await linger();
  client_.close();
}

}  // namespace cofferdam::egress
