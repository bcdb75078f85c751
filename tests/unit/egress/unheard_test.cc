// What a box does not wait for is charged to its budgets all the same: hanging up, or an answer that hides
// its own count, buys nothing.
#include <gtest/gtest.h>

#include "egress/budget.h"
#include "unit/egress/gateway_fixture.h"

namespace cofferdam::egress::testing {
namespace {

constexpr const char* kStreamHead =
    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
constexpr const char* kStart =
    "data: "
    "{\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":10,\"output_tokens\":1}}}\n\n";
constexpr const char* kEnd = "data: {\"type\":\"message_delta\",\"usage\":{\"output_tokens\":9}}\n\n";

TEST(Unheard, IsTheMostThatCanHaveBeen) {
  TokenUsage nothing;
  EXPECT_EQ(unheard(nothing, 500, 100).input, 500U);
  EXPECT_EQ(unheard(nothing, 500, 100).output, 100U);
  TokenUsage begun;
  begun.input = 7;
  begun.output = 30;
  EXPECT_EQ(unheard(begun, 500, 100).input, 0U);
  EXPECT_EQ(unheard(begun, 500, 100).output, 70U);
  begun.output = 200;
  EXPECT_EQ(unheard(begun, 500, 100).output, 0U);
}

class UnheardTest : public GatewayTest {};

TEST_F(UnheardTest, HangingUpBeforeTheEndIsChargedWithTheCeiling) {
  policy_.total_tokens = 250;  // kAllowedBody asks for 100
  start_vendor([](const VendorRequest&, VendorConnection* out) {
    out->write(kStreamHead + chunk(kStart));
    std::string more(1U << 20U, ' ');
    while (
        out->write(chunk(": " + more + "\n\n"))) {  // until the box has gone, and with it the gateway's call
    }
  });
  start_gateway();
  for (int i = 0; i < 3; ++i) {
    BoxClient box = client();
    box.send(post("/v1/messages", kAllowedBody));
    (void)box.read_until("message_start");
    box.hang_up();
    const GatewayEvent event = next_event();
    EXPECT_EQ(event.input_tokens, 10U);
    EXPECT_EQ(event.uncounted_tokens, 99U) << "the ceiling, less what was heard";
  }
  BoxClient box = client();
  box.send(post("/v1/messages", kAllowedBody));
  EXPECT_EQ(status_of(box.read_answer()), 403);
  EXPECT_EQ(next_event().rule, "tokens");
  EXPECT_EQ(vendor_->count(), 3U);
}

TEST_F(UnheardTest, AnAnswerThatIsHeardToItsEndIsNot) {  // the control
  policy_.total_tokens = 250;
  start_vendor([](const VendorRequest&, VendorConnection* out) {
    out->write(kStreamHead + chunk(kStart) + chunk(kEnd) + chunk(""));
  });
  start_gateway();
  for (int i = 0; i < 5; ++i) {
    BoxClient box = client();
    box.send(post("/v1/messages", kAllowedBody));
    EXPECT_EQ(status_of(box.read_answer()), 200);
    const GatewayEvent event = next_event();
    EXPECT_EQ(event.input_tokens + event.output_tokens, 19U);
    EXPECT_EQ(event.uncounted_tokens, 0U);
  }
}

// A vendor that repeats what it was asked, however deep, hides no count; one that says none is charged for.
TEST_F(UnheardTest, DepthHidesNothingAndSilenceIsCharged) {
  std::string count = ",\"usage\":{\"input_tokens\":5,\"output_tokens\":7}";
  start_vendor([&](const VendorRequest&, VendorConnection* out) {
    out->write(json_answer("{\"deep\":" + std::string(60, '[') + std::string(60, ']') + count + "}"));
  });
  start_gateway();
  const auto ask = [this] {
    BoxClient box = client();
    box.send(post("/v1/messages", kAllowedBody));
    EXPECT_EQ(status_of(box.read_answer()), 200);
    return next_event();
  };
  GatewayEvent event = ask();
  EXPECT_EQ(event.input_tokens + event.output_tokens, 12U);
  EXPECT_EQ(event.uncounted_tokens, 0U);
  count = "";
  event = ask();
  EXPECT_EQ(event.input_tokens + event.output_tokens, 0U);
  EXPECT_GE(event.uncounted_tokens, 100U);
}

TEST_F(UnheardTest, PresenceIsAnsweredABoundedNumberOfTimes) {
  start_vendor([](const VendorRequest&, VendorConnection*) {});
  start_gateway();
  BoxClient box = client();
  for (int i = 0; i < 100; ++i) {
    box.send("HEAD / HTTP/1.1\r\nHost: x\r\n\r\n");
    EXPECT_EQ(status_of(box.read_until("\r\n\r\n")), 200);
    EXPECT_FALSE(next_event().denied);
  }
  box.send("HEAD / HTTP/1.1\r\nHost: x\r\n\r\nHEAD / HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_EQ(status_of(box.read_until("\r\n\r\n")), 403);
  EXPECT_TRUE(next_event().denied);
}

}  // namespace
}  // namespace cofferdam::egress::testing
