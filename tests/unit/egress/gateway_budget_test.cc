// Budgets and renewals at a real gateway process, with the test as the broker.
#include <future>

#include "base/clock.h"
#include "base/io.h"
#include "unit/egress/gateway_fixture.h"

namespace cofferdam::egress::testing {
namespace {

constexpr const char* kAnswer =
    R"({"usage":{"input_tokens":100,"cache_read_input_tokens":900,"output_tokens":50}})";

void answer_plainly(const VendorRequest&, VendorConnection* connection) {
  connection->write(json_answer(kAnswer));
}

class BudgetTest : public GatewayTest {
 protected:
  // The status of one more request.
  int ask() {
    BoxClient box = client();
    box.send(post("/v1/messages", kAllowedBody));
    answer_ = box.read_answer();
    return status_of(answer_);
  }
  std::string answer_;
};

TEST_F(BudgetTest, TokensAreCountedAndTheBudgetEnds) {
  policy_.total_tokens = 2000;
  start_vendor(answer_plainly);
  start_gateway();
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(ask(), 200);
    GatewayEvent event = next_event();
    EXPECT_EQ(event.input_tokens, 1000U);
    EXPECT_EQ(event.cache_read_tokens, 900U);
    EXPECT_FALSE(event.limit);
  }
  EXPECT_EQ(ask(), 403);
  GatewayEvent event = next_event();
  EXPECT_EQ(event.rule, "tokens");
  EXPECT_TRUE(event.limit);
  EXPECT_EQ(vendor_->count(), 2U);
}

TEST_F(BudgetTest, CostIsCountedAndTheBudgetEnds) {
  policy_.price = ModelPrice{2'000'000, 10'000'000, 200'000, 0, 0};
  policy_.max_cost_micros = 880;  // exactly one request: 200 + 500 + 180
  start_vendor(answer_plainly);
  start_gateway();
  EXPECT_EQ(ask(), 200);
  EXPECT_EQ(next_event().cost_micros, 880U);
  EXPECT_EQ(ask(), 403);
  EXPECT_EQ(next_event().rule, "cost");
  EXPECT_EQ(vendor_->count(), 1U);
}

TEST_F(BudgetTest, ParallelRequestsAreBounded) {
  policy_.max_parallel = 1;
  std::promise<void> arrived;
  std::promise<void> go_on;
  std::shared_future<void> may_go_on = go_on.get_future().share();
  start_vendor(
      [&arrived, may_go_on, first = true](const VendorRequest& request, VendorConnection* out) mutable {
        if (std::exchange(first, false)) {
          arrived.set_value();
          may_go_on.wait();
        }
        answer_plainly(request, out);
      });
  start_gateway();
  BoxClient box = client();
  box.send(post("/v1/messages", kAllowedBody));
  arrived.get_future().wait();
  EXPECT_EQ(ask(), 429);
  EXPECT_NE(body_of(answer_).find(R"("rule":"parallel")"), std::string::npos);
  GatewayEvent event = next_event();
  EXPECT_EQ(event.rule, "parallel");
  EXPECT_FALSE(event.limit);
  go_on.set_value();
  EXPECT_EQ(status_of(box.read_answer()), 200);
  EXPECT_EQ(ask(), 200);  // the place is free again
}

TEST_F(BudgetTest, RetryAfterPassesThroughAndIsOnRecord) {
  start_vendor([](const VendorRequest&, VendorConnection* out) {
    out->write("HTTP/1.1 429 Too Many Requests\r\nRetry-After: 17\r\nContent-Length: 2\r\n\r\n{}");
  });
  start_gateway();
  EXPECT_EQ(ask(), 429);
  EXPECT_NE(head_of(answer_).find("retry-after: 17"), std::string::npos);
  GatewayEvent event = next_event();
  EXPECT_EQ(event.status, 429);
  EXPECT_EQ(event.retry_after, "17");
  EXPECT_FALSE(event.denied);
}

// A login's token: the Bearer that the vendor sees, and the newest one after a 401.
TEST_F(BudgetTest, ARejectedTokenIsReplacedOnce) {
  policy_.credential_kind = CredentialKind::anthropic_oauth;
  start_vendor([](const VendorRequest& request, VendorConnection* out) {
    const bool good = request.head.find("authorization: Bearer sk-new\r\n") != std::string::npos;
    out->write(good ? json_answer(kAnswer) : "HTTP/1.1 401 Unauthorized\r\nContent-Length: 2\r\n\r\n{}");
  });
  start_gateway();
  EXPECT_EQ(ask(), 401);
  const std::string head = vendor_->requests()[0].head;
  EXPECT_NE(head.find("authorization: Bearer " + std::string(kCredential) + "\r\n"), std::string::npos);
  EXPECT_NE(head.find("anthropic-beta: oauth-2025-04-20\r\n"), std::string::npos);
  EXPECT_EQ(head.find("x-api-key"), std::string::npos);
  auto message = receive_message(broker_.get(), 256);
  ASSERT_TRUE(message);
  auto request = decode_renewal_request(message->bytes);
  ASSERT_TRUE(request);
  EXPECT_EQ(request->seq, 1U);
  EXPECT_TRUE(request->rejected);
  VendorCredential renewed;
  renewed.kind = CredentialKind::anthropic_oauth;
  renewed.token = Secret("sk-new");
  renewed.seq = 2;
  // The next request waits for the answer, whichever comes first.
  ASSERT_TRUE(send_message(broker_.get(), encode_grant(renewed).view()));
  EXPECT_EQ(ask(), 200);
}

// The user has logged in as somebody else meanwhile: the attempt stays with the account that it began with.
TEST_F(BudgetTest, AnotherAccountsTokenIsNotTaken) {
  policy_.vendor = contract::Vendor::openai;
  policy_.credential_kind = CredentialKind::chatgpt;
  credential_.account_id = "first";
  start_vendor([](const VendorRequest& request, VendorConnection* out) {
    const bool first = request.head.find("chatgpt-account-id: first\r\n") != std::string::npos;
    out->write(first ? "HTTP/1.1 401 Unauthorized\r\nContent-Length: 2\r\n\r\n{}" : json_answer("{}"));
  });
  start_gateway();
  const auto responses = [this] {
    BoxClient box = client();
    box.send(post("/v1/responses", R"({"model":"claude-test-1","input":"hi"})"));
    return status_of(box.read_answer());
  };
  EXPECT_EQ(responses(), 401);
  ASSERT_TRUE(receive_message(broker_.get(), 256));
  VendorCredential other;
  other.kind = CredentialKind::chatgpt;
  other.account_id = "second";
  other.token = Secret("sk-new");
  other.seq = 2;
  ASSERT_TRUE(send_message(broker_.get(), encode_grant(other).view()));
  EXPECT_EQ(responses(), 401);
  for (const VendorRequest& seen : vendor_->requests())
    EXPECT_EQ(seen.head.find("sk-new"), std::string::npos);
}

TEST_F(BudgetTest, AnExpiredTokenIsNotSent) {
  credential_.expires_at_ms = now().ms - 1;
  start_vendor(answer_plainly);
  start_gateway();
  BoxClient box = client();
  box.send(post("/v1/messages", kAllowedBody));
  auto message = receive_message(broker_.get(), 256);
  ASSERT_TRUE(message);
  ASSERT_TRUE(send_message(broker_.get(), encode_refusal("login expired")));
  EXPECT_EQ(status_of(box.read_answer()), 403);
  EXPECT_EQ(next_event().rule, "login expired");
  EXPECT_EQ(vendor_->count(), 0U);
}

}  // namespace
}  // namespace cofferdam::egress::testing
