#include "egress/https_post.h"

#include <openssl/crypto.h>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <chrono>
#include <exception>
#include <optional>
#include <utility>

#include "egress/origin.h"
#include "egress/upstream.h"

namespace cofferdam::egress {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using boost::system::error_code;

constexpr auto kLimit = std::chrono::seconds(30);
constexpr auto kUnwindLimit = std::chrono::seconds(1);
constexpr std::uint64_t kMaxAnswer = 256U << 10U;

// Head and body in one piece that is wiped.
Secret request_bytes(const Origin& origin, const std::string& path, const Secret& body) {
  std::string text = "POST " + path + " HTTP/1.1\r\nhost: " + origin.authority() +
                     "\r\ncontent-type: application/json\r\naccept: application/json\r\nconnection: close\r\n"
                     "content-length: " +
                     std::to_string(body.view().size()) + "\r\n\r\n";
  text.reserve(text.size() + body.view().size());
  text += body.view();
  Secret out(text);
  wipe_string(&text);
  return out;
}

asio::awaitable<Result<PostAnswer>> exchange(Upstream* upstream, Call* call, const Secret& request) {
  VendorFailure failure = co_await upstream->connect(call);
  if (failure != VendorFailure::none) co_return make_error(Code::io, failure_name(failure));
  error_code ec;
  call->stream().next_layer().expires_after(kLimit);
  co_await asio::async_write(call->stream(), asio::buffer(request.view()),
                             asio::redirect_error(asio::use_awaitable, ec));
  http::response_parser<http::string_body> parser;
  parser.body_limit(kMaxAnswer);
  // Of one size from the start: growth would leave copies of tokens behind.
  boost::beast::flat_buffer buffer(kMaxAnswer);
  buffer.reserve(kMaxAnswer);
  parser.get().body().reserve(kMaxAnswer);
  if (!ec) {
    co_await http::async_read(call->stream(), buffer, parser, asio::redirect_error(asio::use_awaitable, ec));
  }
  PostAnswer answer;
  answer.status = static_cast<int>(parser.get().result_int());
  answer.body = Secret(parser.get().body());
  wipe_string(&parser.get().body());
  buffer.clear();
  const auto whole = buffer.prepare(kMaxAnswer);  // all of it, what has been read included
  ::OPENSSL_cleanse(whole.data(), whole.size());
  if (ec) co_return make_error(Code::io, "no complete answer");
  co_return answer;
}

}  // namespace

Result<PostAnswer> https_post(const std::string& url, const PostWay& way, const Secret& body) {
  const std::size_t slash = url.find('/', std::string_view("https://").size());
  if (slash == std::string::npos) return make_error(Code::config, "the token URL has no path");
  GatewaySetup setup;
  TRY(setup.origin, parse_origin(url.substr(0, slash)));
  if (!way.proxy.empty()) {
    TRY(setup.proxy, parse_proxy(way.proxy));
  }
  setup.policy.ca_bundle = way.ca_bundle;
  setup.policy.transport.extra_ca_bundle = way.extra_ca_bundle;
  const Secret request = request_bytes(setup.origin, url.substr(slash), body);
  std::optional<Result<PostAnswer>> answer;
  asio::io_context context(1);
  LocalNames names;
  TRY(auto upstream, Upstream::create(&context, &names, setup));
  Call call;
  try {
    asio::co_spawn(
        context,
        [](Upstream* to, Call* over, const Secret* bytes,
           std::optional<Result<PostAnswer>>* out) -> asio::awaitable<void> {
          out->emplace(co_await exchange(to, over, *bytes));
        }(upstream.get(), &call, &request, &answer),
        [](const std::exception_ptr& problem) {
          if (problem) std::rethrow_exception(problem);
        });
    context.run_for(kLimit);
    if (!answer.has_value()) {  // unwinds what is still waiting
      call.cancel();
      context.restart();
      context.run_for(kUnwindLimit);
    }
  } catch (const std::exception& problem) {
    return make_error(Code::internal, problem.what());
  }
  if (!answer.has_value()) return make_error(Code::timeout, "no answer in time");
  return *std::move(answer);
}

}  // namespace cofferdam::egress
