// The routes of both vendors, with the credential that belongs to each, seen by the vendor.
#include <gtest/gtest.h>

#include "unit/egress/gateway_fixture.h"

namespace cofferdam::egress::testing {
namespace {

void answer_usage(const VendorRequest&, VendorConnection* connection) {
  connection->write(
      "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
      "data: {\"type\":\"response.completed\",\"response\":{\"usage\":{\"input_tokens\":7,"
      "\"output_tokens\":3}}}\n\n");
}

constexpr const char* kCodexBody =
    R"({"model":"claude-test-1","stream":true,"store":false,"input":[{"type":"message","role":"user",)"
    R"("content":[{"type":"input_text","text":"a\u0000b"}]}]})";

class VendorRoutes : public GatewayTest {
 protected:
  void use(CredentialKind kind) {
    policy_.vendor = contract::Vendor::openai;
    policy_.credential_kind = kind;
  }
  // One POST that is allowed, as the vendor saw it.
  VendorRequest relayed() {
    BoxClient box = client();
    box.send(post("/v1/responses", kCodexBody, "Authorization: Bearer sk-box\r\nSession-Id: s\r\n"));
    EXPECT_EQ(status_of(box.read_answer()), 200);
    EXPECT_EQ(vendor_->count(), 1U);
    GatewayEvent event = next_event();
    EXPECT_EQ(event.rule, "responses");
    EXPECT_EQ(event.path, "/v1/responses");
    EXPECT_EQ(event.input_tokens, 7U);
    EXPECT_EQ(event.output_tokens, 3U);
    VendorRequest seen = vendor_->requests()[0];
    EXPECT_EQ(seen.head.find("sk-box"), std::string::npos);
    EXPECT_EQ(seen.head.find("x-api-key"), std::string::npos);
    EXPECT_NE(seen.head.find("authorization: Bearer " + std::string(kCredential) + "\r\n"),
              std::string::npos);
    EXPECT_NE(seen.head.find("session-id: s\r\n"), std::string::npos);
    return seen;
  }
};

TEST_F(VendorRoutes, AnOpenAiKey) {
  use(CredentialKind::openai_api_key);
  start_vendor(answer_usage);
  start_gateway();
  VendorRequest seen = relayed();
  EXPECT_EQ(seen.head.rfind("POST /v1/responses HTTP/1.1\r\n", 0), 0U);
  std::string expected(kCodexBody);
  expected.insert(expected.size() - 1, R"(,"max_output_tokens":1000)");
  EXPECT_EQ(seen.body, expected);
}

TEST_F(VendorRoutes, AnInternalGatewayBelowAPath) {
  use(CredentialKind::bearer);
  start_vendor(answer_usage);
  policy_.upstream += "/models/eu";
  start_gateway();
  EXPECT_EQ(relayed().head.rfind("POST /models/eu/v1/responses HTTP/1.1\r\n", 0), 0U);
}

// Codex asks for a WebSocket first: a plain answer, on record, so that it posts.
TEST_F(VendorRoutes, AWebSocketIsRefusedCleanly) {
  use(CredentialKind::openai_api_key);
  start_vendor(answer_usage);
  start_gateway();
  BoxClient box = client();
  box.send(
      "GET /v1/responses HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
      "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n\r\n");
  std::string answer = box.read_answer();
  EXPECT_EQ(status_of(answer), 426);
  EXPECT_NE(body_of(answer).find("\"rule\":\"websocket\""), std::string::npos);
  box.read_to_end();
  EXPECT_TRUE(box.closed());
  GatewayEvent event = next_event();
  EXPECT_TRUE(event.denied);
  EXPECT_EQ(event.rule, "websocket");
  EXPECT_EQ(event.status, 426);
  EXPECT_EQ(vendor_->count(), 0U);
}

TEST_F(VendorRoutes, AnUnknownFlagIsDenied) {
  start_vendor(answer_usage);
  start_gateway();
  BoxClient box = client();
  box.send(post("/v1/messages", kAllowedBody, "anthropic-beta: files-api-2025-04-14\r\n"));
  EXPECT_EQ(status_of(box.read_answer()), 403);
  EXPECT_EQ(next_event().rule, "flag");
  EXPECT_EQ(vendor_->count(), 0U);
}

}  // namespace
}  // namespace cofferdam::egress::testing
