#include "egress/token_store.h"

#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <limits>
#include <utility>

#include "base/clock.h"
#include "base/io.h"

namespace cofferdam::egress {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;
using Clock = std::chrono::steady_clock;

constexpr int kFirstLimitMs = 10'000;
// The broker refreshes what has less than this and a minute left.
constexpr std::int64_t kRenewAheadMs = 5LL * 60 * 1000;
constexpr std::int64_t kUsableMs = 30'000;  // less than this and the answer could come too late
constexpr auto kRenewalLimit = std::chrono::seconds(100);
constexpr auto kAskAgain = std::chrono::seconds(60);

}  // namespace

Result<VendorCredential> receive_first_credential(int broker) {
  TRY(bool readable, wait_readable(broker, kFirstLimitMs));
  if (!readable) return make_error(Code::timeout, "the broker has handed out no credential");
  TRY(Message message, receive_message(broker, kMaxGrantBytes));
  auto grant = decode_grant(message.bytes);
  wipe_string(&message.bytes);
  if (!grant) return std::move(grant).error();
  if (!grant->credential.has_value()) return make_error(Code::denied, grant->refusal);
  return *std::move(grant->credential);
}

TokenStore::TokenStore(asio::io_context* context, VendorCredential first)
    : newest_(std::make_shared<VendorCredential>(std::move(first))), broker_(*context), context_(context) {}

Result<std::unique_ptr<TokenStore>> TokenStore::create(asio::io_context* context, VendorCredential first,
                                                       UniqueFd broker) {
  std::unique_ptr<TokenStore> out(new TokenStore(context, std::move(first)));
  error_code ec;
  out->broker_.assign(broker.release(), ec);
  if (ec) return make_error(Code::internal, "the gateway's line to the broker: " + ec.message());
  out->listen();
  return out;
}

void TokenStore::listen() {
  broker_.async_wait(asio::posix::stream_descriptor::wait_read, [this](error_code ec) {
    if (!ec) receive();
  });
}

void TokenStore::receive() {
  auto message = receive_message(broker_.native_handle(), kMaxGrantBytes);
  if (!message || message->closed) return close();  // what we have is what there is
  auto grant = decode_grant(message->bytes);
  wipe_string(&message->bytes);
  const bool usable = grant && grant->credential.has_value();
  // The user may have logged in as somebody else meanwhile: an attempt stays with the account that it began
  // with.
  const bool same = usable && grant->credential->kind == newest_->kind &&
                    grant->credential->account_id == newest_->account_id;
  if (same) {
    newest_ = std::make_shared<VendorCredential>(*std::move(grant->credential));
  } else {
    next_ask_ = Clock::now() + kAskAgain;
  }
  settle();
  listen();
}

void TokenStore::settle() {
  pending_ = false;
  for (asio::steady_timer* waiter : waiters_) waiter->cancel();
}

void TokenStore::close() {
  error_code ignored;
  broker_.close(ignored);
  settle();
}

void TokenStore::ask(bool rejected) {
  if (pending_ || !broker_.is_open()) return;
  pending_ =
      send_message(broker_.native_handle(), encode_renewal_request({newest_->seq, rejected})).has_value();
}

std::int64_t TokenStore::left_ms() const {
  if (newest_->expires_at_ms == 0) return std::numeric_limits<std::int64_t>::max();
  return newest_->expires_at_ms - now().ms;
}

void TokenStore::rejected(std::uint64_t seq) {
  if (seq != newest_->seq || rejected_seq_ == seq) return;
  rejected_seq_ = seq;
  ask(true);
}

asio::awaitable<TokenStore::Handle> TokenStore::current() {
  if (left_ms() < kRenewAheadMs && Clock::now() >= next_ask_) ask(false);
  const auto end = Clock::now() + kRenewalLimit;
  while (pending_ && (left_ms() < kUsableMs || rejected_seq_ == newest_->seq) && Clock::now() < end) {
    error_code ignored;
    asio::steady_timer waiter(*context_, end);
    waiters_.insert(&waiter);
    co_await waiter.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
    waiters_.erase(&waiter);
  }
  co_return left_ms() > 0 ? newest_ : nullptr;
}

}  // namespace cofferdam::egress
