// A vendor that is silent, endless, or says when to come back: the bounds of an answer, as the box and the
// account see them. Each has its control, an answer within them.
#include <gtest/gtest.h>

#include <atomic>

#include "egress/upstream.h"
#include "unit/egress/gateway_fixture.h"

namespace cofferdam::egress::testing {
namespace {

constexpr const char* kStreamHead =
    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n";

class VendorBounds : public GatewayTest {
 protected:
  // One request that is allowed, and its event.
  GatewayEvent ask(std::string* answer) {
    BoxClient box = client();
    box.send(post("/v1/messages", kAllowedBody));
    *answer = box.read_answer();
    return next_event();
  }
  // What the box hears of a Retry-After.
  std::string heard(contract::Vendor vendor, const std::string& retry_after) {
    const bool openai = vendor == contract::Vendor::openai;
    policy_.vendor = vendor;
    policy_.credential_kind = openai ? CredentialKind::openai_api_key : CredentialKind::anthropic_api_key;
    start_vendor([retry_after](const VendorRequest&, VendorConnection* connection) {
      connection->write("HTTP/1.1 429 Too Many Requests\r\nContent-Length: 2\r\nRetry-After: " + retry_after +
                        "\r\n\r\n{}");
    });
    start_gateway();
    BoxClient box = client();
    box.send(
        openai ? post("/v1/responses", R"({"model":"claude-test-1","stream":true,"store":false,"input":[]})")
               : post("/v1/messages", kAllowedBody));
    std::string answer = box.read_answer();
    EXPECT_EQ(status_of(answer), 429) << answer;
    EXPECT_EQ(next_event().retry_after, retry_after);
    const std::size_t at = answer.find("retry-after: ");
    if (at == std::string::npos) return "nothing";
    return answer.substr(at + 13, answer.find('\r', at) - at - 13);
  }
};

TEST_F(VendorBounds, AHeadThatDoesNotCome) {
  policy_.transport.head_ms = 200;
  policy_.transport.idle_ms = 60'000;
  start_vendor([](const VendorRequest&, VendorConnection* connection) { connection->wait_for_close(); });
  start_gateway();
  std::string answer;
  GatewayEvent event = ask(&answer);
  EXPECT_EQ(status_of(answer), 504);
  EXPECT_EQ(event.status, 504);
  EXPECT_EQ(event.failure, "vendor-timeout");
  EXPECT_EQ(event.rule, "messages (vendor-timeout)");
}

// Nobody else ends it: its supervisor may be stopped.
TEST_F(VendorBounds, ItsOwnDeadlineEndsTheGateway) {
  policy_.deadline_ms = 1000;
  start_vendor([](const VendorRequest&, VendorConnection* connection) { connection->wait_for_close(); });
  start_gateway();
  BoxClient box = client();
  box.send(post("/v1/messages", kAllowedBody));
  GatewayEvent event = next_event();
  EXPECT_EQ(event.rule, kDeadlineRule);
  EXPECT_TRUE(event.limit);
  EXPECT_FALSE(event.denied);
  auto ended = gateway_->process().wait(std::chrono::seconds(60));
  ASSERT_TRUE(ended) << "a request that was under way does not keep it";
  EXPECT_TRUE(ended->success());
}

TEST_F(VendorBounds, ControlADeadlineThatHasNotComeEndsNothing) {
  policy_.deadline_ms = 3'600'000;
  start_vendor([](const VendorRequest&, VendorConnection* connection) {
    connection->write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}");
  });
  start_gateway();
  std::string answer;
  ask(&answer);
  EXPECT_EQ(status_of(answer), 200);
  EXPECT_TRUE(gateway_->process().running());
}

TEST_F(VendorBounds, AStreamThatFallsSilent) {
  policy_.transport.head_ms = 60'000;
  policy_.transport.idle_ms = 200;
  start_vendor([](const VendorRequest&, VendorConnection* connection) {
    connection->write(std::string(kStreamHead) + "data: {}\n\n");
    connection->wait_for_close();
  });
  start_gateway();
  std::string answer;
  GatewayEvent event = ask(&answer);
  EXPECT_EQ(event.status, 200);
  EXPECT_EQ(event.failure, "vendor-timeout");
  EXPECT_FALSE(event.limit);
}

TEST_F(VendorBounds, AnAnswerThatIsTooLarge) {
  policy_.transport.answer_bytes = 1000;
  std::atomic<std::size_t> size = 1000;
  start_vendor([&size](const VendorRequest&, VendorConnection* connection) {
    connection->write(kStreamHead + std::string(size, 'x'));
  });
  start_gateway();
  std::string answer;
  GatewayEvent control = ask(&answer);
  EXPECT_EQ(control.failure, "");
  EXPECT_FALSE(control.limit);
  EXPECT_EQ(control.response_bytes, 1000U);
  size = 100'000;
  GatewayEvent event = ask(&answer);
  EXPECT_EQ(event.failure, "vendor-too-large");
  EXPECT_TRUE(event.limit);
  EXPECT_FALSE(event.denied);
  EXPECT_LE(event.response_bytes, 1000U);
}

TEST_F(VendorBounds, AWaitThatIsTooLongIsNotPassedOnToCodex) {
  EXPECT_EQ(heard(contract::Vendor::openai, "60"), "60");
  EXPECT_EQ(heard(contract::Vendor::openai, "61"), "nothing");
  EXPECT_EQ(heard(contract::Vendor::openai, "3600"), "nothing");
  EXPECT_EQ(heard(contract::Vendor::openai, "Wed, 30 Nov 2026 12:00:00 GMT"), "nothing");
  EXPECT_EQ(heard(contract::Vendor::anthropic, "3600"), "3600");
}

TEST(VendorFailures, TheNameOfAClientThatLeft) {
  EXPECT_STREQ(failure_name(VendorFailure::cancelled), kClientGone);
}

}  // namespace
}  // namespace cofferdam::egress::testing
