// The gateway as a process: what reaches the vendor, what comes back, and what is on record (attacks.md D, E,
// F32).
#include <signal.h>
#include <sys/socket.h>

#include <future>

#include "base/file.h"
#include "unit/egress/gateway_fixture.h"

namespace cofferdam::egress::testing {
namespace {

constexpr const char* kAnswer = R"({"id":"msg_1","usage":{"input_tokens":7,"output_tokens":3}})";

void answer_plainly(const VendorRequest&, VendorConnection* connection) {
  connection->write(json_answer(kAnswer, "Set-Cookie: a=b\r\nRequest-Id: req_1\r\nServer: vendor\r\n"));
}

std::size_t occurrences(const std::string& text, std::string_view what) {
  std::size_t count = 0;
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++count;
  return count;
}

// E3, E9: the real credential goes to the vendor, once; what the box brought along does not.
TEST_F(GatewayTest, SetsTheRealCredentialAndStripsTheBoxs) {
  start_vendor(answer_plainly);
  start_gateway();
  BoxClient box = client();
  std::string fields = "x-api-key: " + std::string(kPlaceholder) + "\r\nAuthorization: Bearer " +
                       kPlaceholder + "\r\nCookie: c=" + kPlaceholder +
                       "\r\nProxy-Authorization: " + kPlaceholder +
                       "\r\nX-Custom: leak\r\nAnthropic-Version: 2023-06-01\r\nUser-Agent: box/1\r\n";
  box.send(post("/v1/messages?beta=true", kAllowedBody, fields));
  std::string answer = box.read_answer();
  EXPECT_EQ(status_of(answer), 200);
  EXPECT_EQ(body_of(answer), kAnswer);
  expect_no_secret(answer);
  std::string shown = head_of(answer);
  EXPECT_EQ(shown.find("set-cookie"), std::string::npos);
  EXPECT_EQ(shown.find("server"), std::string::npos);
  EXPECT_NE(shown.find("request-id: req_1"), std::string::npos);

  ASSERT_EQ(vendor_->count(), 1U);
  VendorRequest seen = vendor_->requests()[0];
  EXPECT_EQ(occurrences(seen.head, "x-api-key: " + std::string(kCredential) + "\r\n"), 1U);
  EXPECT_EQ((seen.head + seen.body).find(kPlaceholder), std::string::npos);
  for (const char* gone : {"authorization", "cookie", "proxy-", "x-custom"}) {
    EXPECT_EQ(seen.head.find(gone), std::string::npos) << gone;
  }
  EXPECT_EQ(seen.head.rfind("POST /v1/messages?beta=true HTTP/1.1\r\nhost: 127.0.0.1:", 0), 0U);
  EXPECT_NE(seen.head.find("anthropic-version: 2023-06-01\r\n"), std::string::npos);
  EXPECT_NE(seen.head.find("accept-encoding: identity\r\n"), std::string::npos);
  EXPECT_EQ(seen.sni, "");  // an address has no SNI

  GatewayEvent event = next_event();
  EXPECT_EQ(event.rule, "messages");
  EXPECT_EQ(event.path, "/v1/messages?beta=true");
  EXPECT_EQ(event.status, 200);
  EXPECT_FALSE(event.denied);
  EXPECT_EQ(event.input_tokens, 7U);
  EXPECT_EQ(event.output_tokens, 3U);
  EXPECT_EQ(event.response_bytes, std::string(kAnswer).size());
}

TEST_F(GatewayTest, ProcessIsHardenedAndHasNoSecretInArgvOrEnvironment) {
  start_vendor(answer_plainly);
  start_gateway();
  std::string proc = "/proc/" + std::to_string(gateway_->process().pid());
  auto cmdline = read_file(proc + "/cmdline", 65536);
  ASSERT_TRUE(cmdline.has_value());
  expect_no_secret(*cmdline);
  auto status = read_file(proc + "/status", 65536);
  ASSERT_TRUE(status.has_value());
  EXPECT_NE(status->find("NoNewPrivs:\t1"), std::string::npos);
  // Not dumpable: without privilege even the same user cannot look; with it, there is nothing to see.
  auto environment = read_file(proc + "/environ", 65536);
  if (environment) {
    EXPECT_EQ(*environment, "");
  }
}

// D3, D22: nothing but the vendor's own route, whatever the method or the spelling.
TEST_F(GatewayTest, DeniedRoutesNeverReachTheVendor) {
  start_vendor(answer_plainly);
  start_gateway();
  for (const char* target :
       {"/v1/files", "/v1/messages/batches", "/v1/messages?beta=false", "/v1/messages?", "/v1/messages/",
        "//v1/messages", "/v1/%6dessages", "/v1/./messages", "/v1/Messages"}) {
    BoxClient box = client();
    box.send(post(target, kAllowedBody));
    std::string answer = box.read_to_end();
    EXPECT_EQ(status_of(answer), 403) << target;
    EXPECT_TRUE(box.closed()) << target;
    EXPECT_NE(body_of(answer).find(R"("cofferdam":{"denied":true,"retry":false,"rule":)"), std::string::npos)
        << answer;
    EXPECT_NE(body_of(answer).find("denied by Cofferdam policy: "), std::string::npos);
    GatewayEvent event = next_event();
    EXPECT_TRUE(event.denied) << target;
    EXPECT_EQ(event.path, target);
    EXPECT_EQ(event.status, 403);
  }
  EXPECT_EQ(vendor_->count(), 0U);
  BoxClient control = client();
  control.send(post("/v1/messages", kAllowedBody));
  EXPECT_EQ(status_of(control.read_answer()), 200);
  EXPECT_EQ(vendor_->count(), 1U);
}

TEST_F(GatewayTest, AnswersThePresenceCheckItself) {
  start_vendor(answer_plainly);
  start_gateway();
  BoxClient box = client();
  for (int i = 0; i < 2; ++i) {  // and keeps the connection
    box.send("HEAD / HTTP/1.1\r\nHost: x\r\n\r\n");
    EXPECT_EQ(status_of(box.read_answer()), 200);
    EXPECT_EQ(next_event().rule, "presence");
  }
  EXPECT_EQ(vendor_->count(), 0U);
}

// G1 over the wire: the denial names the place, nothing is sent, the connection stays usable.
TEST_F(GatewayTest, DeniedBodiesNeverReachTheVendor) {
  start_vendor(answer_plainly);
  start_gateway();
  BoxClient box = client();
  box.send(post("/v1/messages", R"({"model":"other","max_tokens":1,"messages":[]})"));
  std::string answer = box.read_answer();
  EXPECT_EQ(status_of(answer), 403);
  EXPECT_NE(answer.find(R"("path":"$.model")"), std::string::npos) << answer;
  EXPECT_EQ(next_event().rule, "model");
  EXPECT_EQ(vendor_->count(), 0U);
  box.send(post("/v1/messages", kAllowedBody));  // control
  EXPECT_EQ(status_of(box.read_answer()), 200);
  EXPECT_EQ(vendor_->count(), 1U);
}

TEST_F(GatewayTest, ForwardsItsOwnSerialisationWithTheTokenCeiling) {
  start_vendor(answer_plainly);
  start_gateway();
  BoxClient box = client();
  // In chunks, with white space and an order of its own; none of that is the vendor's business.
  box.send("POST /v1/messages HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n");
  box.send(chunk(R"({ "model" : "claude-test-1", "max_tokens":64000,)"));
  box.send(chunk(R"( "messages" : [] })") + chunk(""));
  EXPECT_EQ(status_of(box.read_answer()), 200);
  ASSERT_EQ(vendor_->count(), 1U);
  EXPECT_EQ(vendor_->requests()[0].body, R"({"model":"claude-test-1","max_tokens":1000,"messages":[]})");
  EXPECT_EQ(vendor_->requests()[0].head.find("transfer-encoding"), std::string::npos);
  EXPECT_EQ(next_event().rule, "messages (max_tokens lowered)");
}

// The vendor sends its second event only after the first one has been seen in the box.
TEST_F(GatewayTest, StreamsEventByEvent) {
  std::promise<void> first_seen;
  std::shared_future<void> go(first_seen.get_future());
  start_vendor([go](const VendorRequest&, VendorConnection* connection) {
    connection->write(
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n");
    std::string start =
        "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"usage\":"
        "{\"input_tokens\":5,\"cache_read_input_tokens\":20,\"output_tokens\":1}}}\n\n";
    connection->write(chunk(start));
    go.wait_for(std::chrono::seconds(20));
    std::string end = "data: {\"type\":\"message_delta\",\"usage\":{\"output_tokens\":9}}\n\n";
    connection->write(chunk(end) + chunk(""));
  });
  start_gateway();
  BoxClient box = client();
  box.send(post("/v1/messages", kAllowedBody));
  std::string first = box.read_until("\"output_tokens\":1}}}\n\n");
  EXPECT_EQ(status_of(first), 200);
  EXPECT_NE(head_of(first).find("content-type: text/event-stream"), std::string::npos);
  EXPECT_EQ(first.find("message_delta"), std::string::npos);
  first_seen.set_value();
  EXPECT_NE(box.read_until("0\r\n\r\n").find("message_delta"), std::string::npos);
  GatewayEvent event = next_event();
  EXPECT_EQ(event.input_tokens, 25U);
  EXPECT_EQ(event.output_tokens, 9U);
}

TEST_F(GatewayTest, HangingUpCancelsTheVendorsRequest) {
  std::promise<void> asked;
  std::promise<void> cancelled;
  start_vendor([&](const VendorRequest&, VendorConnection* connection) {
    asked.set_value();
    connection->wait_for_close();
    cancelled.set_value();
  });
  start_gateway();
  BoxClient box = client();
  box.send(post("/v1/messages", kAllowedBody));
  ASSERT_EQ(asked.get_future().wait_for(std::chrono::seconds(20)), std::future_status::ready);
  box.hang_up();
  EXPECT_EQ(cancelled.get_future().wait_for(std::chrono::seconds(20)), std::future_status::ready);
  GatewayEvent event = next_event();
  EXPECT_EQ(event.rule, "messages (client-gone)");
  EXPECT_EQ(event.status, 0);
}

TEST_F(GatewayTest, BudgetEndsWithALimit) {
  policy_.max_requests = 2;
  start_vendor(answer_plainly);
  start_gateway();
  BoxClient box = client();
  box.send(post("/v1/messages", R"({"model":"other","max_tokens":1,"messages":[]})"));
  EXPECT_EQ(status_of(box.read_answer()), 403);  // a denied one does not count
  EXPECT_FALSE(next_event().limit);
  for (int i = 0; i < 2; ++i) {
    box.send(post("/v1/messages", kAllowedBody));
    EXPECT_EQ(status_of(box.read_answer()), 200);
    EXPECT_FALSE(next_event().limit);
  }
  box.send(post("/v1/messages", kAllowedBody));
  EXPECT_EQ(status_of(box.read_answer()), 403);
  GatewayEvent event = next_event();
  EXPECT_EQ(event.rule, "requests");
  EXPECT_TRUE(event.denied);
  EXPECT_TRUE(event.limit);
  EXPECT_EQ(vendor_->count(), 2U);
}

TEST_F(GatewayTest, TerminatesWithTheRequestInFlightOnRecord) {
  std::promise<void> asked;
  start_vendor([&](const VendorRequest&, VendorConnection* connection) {
    asked.set_value();
    connection->wait_for_close();
  });
  start_gateway();
  BoxClient box = client();
  box.send(post("/v1/messages", kAllowedBody));
  ASSERT_EQ(asked.get_future().wait_for(std::chrono::seconds(20)), std::future_status::ready);
  gateway_->process().signal(SIGTERM);
  EXPECT_EQ(next_event().rule, "messages (client-gone)");
  auto status = gateway_->process().wait(std::chrono::seconds(20));
  ASSERT_TRUE(status.has_value());
  EXPECT_TRUE(status->success()) << status->describe();
}

TEST_F(GatewayTest, EndsWhenNobodyReadsItsEvents) {
  start_vendor(answer_plainly);
  start_gateway();
  Child child = std::move(gateway_->process());
  gateway_.reset();  // closes our end of the pipe
  auto status = child.wait(std::chrono::seconds(20));
  ASSERT_TRUE(status.has_value());
  EXPECT_EQ(status->code, 1);
}

TEST_F(GatewayTest, SaysWhyItDoesNotStart) {
  start_vendor(answer_plainly);
  std::string good = policy_.ca_bundle;
  policy_.ca_bundle = dir_->path() + "/missing.pem";
  auto missing = try_gateway();
  ASSERT_FALSE(missing.has_value());
  EXPECT_NE(missing.error().line().find(policy_.ca_bundle), std::string::npos) << missing.error().line();
  expect_no_secret(missing.error().line());

  policy_.ca_bundle = dir_->path() + "/empty.pem";
  ASSERT_TRUE(write_file_atomic(policy_.ca_bundle, "nothing here\n").has_value());
  auto empty = try_gateway();
  ASSERT_FALSE(empty.has_value());
  EXPECT_NE(empty.error().line().find(policy_.ca_bundle + " holds no certificate"), std::string::npos);

  policy_.ca_bundle = good;
  policy_.upstream = "http://127.0.0.1";
  auto plain = try_gateway();
  ASSERT_FALSE(plain.has_value());
  EXPECT_NE(plain.error().line().find("https://host[:port]"), std::string::npos) << plain.error().line();
}

}  // namespace
}  // namespace cofferdam::egress::testing
