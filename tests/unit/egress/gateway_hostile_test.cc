// The gateway against a box that bends HTTP and a vendor that does not behave (attacks.md D4, D9, D22, E9).
#include <future>

#include "base/file.h"
#include "unit/egress/gateway_fixture.h"

namespace cofferdam::egress::testing {
namespace {

void answer_plainly(const VendorRequest&, VendorConnection* connection) {
  connection->write(json_answer("{}"));
}

// Each one is answered with 4xx or 5xx, and the connection ends: nothing behind it is ever read as a request.
TEST_F(GatewayTest, SmugglingClosesTheConnection) {
  start_vendor(answer_plainly);
  start_gateway();
  const std::string host = "Host: x\r\n";
  const std::string behind = post("/v1/messages", kAllowedBody);
  const std::vector<std::string> cases = {
      "POST /v1/messages HTTP/1.1\r\n" + host + "Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
      "POST /v1/messages HTTP/1.1\r\n" + host + "Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}",
      "POST /v1/messages HTTP/1.1\r\n" + host + "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n{}",
      "POST /v1/messages HTTP/1.1\r\n" + host + "Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n",
      "POST /v1/messages HTTP/1.1\r\n" + host + "Transfer-Encoding: gzip\r\n\r\n0\r\n\r\n",
      "POST /v1/messages HTTP/1.1\r\n" + host + "Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
      "POST /v1/messages HTTP/1.1\r\n" + host +
          "Transfer-Encoding: chunked\r\n\r\n2;ext=1\r\n{}\r\n0\r\n\r\n",
      "POST /v1/messages HTTP/1.1\r\n" + host +
          "Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\nx: y\r\n\r\n",
      "POST /v1/messages HTTP/1.1\r\n" + host + "Content-Length: +2\r\n\r\n{}",
      "POST /v1/messages HTTP/1.1\r\n" + host + "X-A: 1\r\n folded\r\nContent-Length: 2\r\n\r\n{}",
      "POST /v1/messages HTTP/1.1\n" + host + "Content-Length: 2\r\n\r\n{}",
      "POST /v1/messages HTTP/1.1\r\n" + host + "Content-Encoding: gzip\r\nContent-Length: 2\r\n\r\n{}",
      "POST /v1/messages HTTP/1.1\r\n" + host + "Upgrade: websocket\r\nConnection: Upgrade\r\n\r\n",
      "POST /v1/messages HTTP/1.1\r\n" + host + host + "Content-Length: 2\r\n\r\n{}",
      "POST https://127.0.0.1/v1/messages HTTP/1.1\r\n" + host + "Content-Length: 2\r\n\r\n{}",
      "CONNECT 127.0.0.1:443 HTTP/1.1\r\n" + host + "\r\n",
      "POST /v1/messages HTTP/1.0\r\n" + host + "Content-Length: 2\r\n\r\n{}",
      "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
      "POST /v1/messages HTTP/1.1\r\n" + host + "Content-Length: 33554433\r\n\r\n",
      "\r\n",
  };
  for (const std::string& bytes : cases) {
    BoxClient box = client();
    box.send(bytes + behind);
    std::string answer = box.read_to_end();
    EXPECT_TRUE(box.closed()) << bytes;
    EXPECT_GE(status_of(answer), 400) << bytes;
    EXPECT_EQ(answer.find("HTTP/1.1", 1), std::string::npos) << "two answers: " << answer;
    EXPECT_TRUE(next_event().denied) << bytes;
  }
  EXPECT_EQ(vendor_->count(), 0U);
  BoxClient control = client();  // the request behind them is a good one
  control.send(behind);
  EXPECT_EQ(status_of(control.read_answer()), 200);
  EXPECT_EQ(vendor_->count(), 1U);
}

TEST_F(GatewayTest, AnEndlessHeadIsRefused) {
  start_vendor(answer_plainly);
  start_gateway();
  BoxClient box = client();
  box.send("GET / HTTP/1.1\r\nX: " + std::string(70'000, 'a'));
  EXPECT_EQ(status_of(box.read_to_end()), 431);
}

TEST_F(GatewayTest, OnlySoManyConnectionsAtATime) {
  EXPECT_EQ(policy_.max_connections, 64U);
  policy_.max_connections = 3;
  start_vendor(answer_plainly);
  start_gateway();
  std::vector<BoxClient> held;
  for (int i = 0; i < 3; ++i) {
    held.push_back(client());
    held.back().send("HEAD / HTTP/1.1\r\nHost: x\r\n\r\n");
    ASSERT_EQ(status_of(held.back().read_answer()), 200);
    next_event();
  }
  BoxClient refused = client();
  EXPECT_EQ(status_of(refused.read_to_end()), 503);
  EXPECT_EQ(next_event().rule, "http: too many connections");
}

// Without a verified session nothing of the request leaves, and the credential least of all.
TEST_F(GatewayTest, AVendorThatCannotBeVerifiedGetsNothing) {
  start_vendor(answer_plainly);
  std::string good = policy_.ca_bundle;
  policy_.ca_bundle = dir_->path() + "/other.pem";
  ASSERT_TRUE(write_file_atomic(policy_.ca_bundle, Certificate("IP:127.0.0.1").pem()).has_value());
  start_gateway();
  BoxClient box = client();
  box.send(post("/v1/messages", kAllowedBody));
  std::string answer = box.read_answer();
  EXPECT_EQ(status_of(answer), 502);
  EXPECT_NE(answer.find("vendor-tls"), std::string::npos);
  expect_no_secret(answer);
  EXPECT_EQ(next_event().rule, "messages (vendor-tls)");
  EXPECT_EQ(vendor_->count(), 0U);

  policy_.ca_bundle = good;  // control
  start_gateway();
  BoxClient control = client();
  control.send(post("/v1/messages", kAllowedBody));
  EXPECT_EQ(status_of(control.read_answer()), 200);
  EXPECT_EQ(vendor_->count(), 1U);
}

// The chain is trusted, the name is another's.
TEST_F(GatewayTest, ACertificateForAnotherNameIsRefused) {
  for (const char* names : {"DNS:vendor.test", "IP:127.0.0.2", "DNS:127.0.0.1"}) {
    start_vendor(answer_plainly, names);
    start_gateway();
    BoxClient box = client();
    box.send(post("/v1/messages", kAllowedBody));
    EXPECT_EQ(status_of(box.read_answer()), 502) << names;
    EXPECT_EQ(next_event().rule, "messages (vendor-tls)") << names;
    EXPECT_EQ(vendor_->count(), 0U) << names;
  }
}

TEST_F(GatewayTest, ANameIsSentAsSniAndVerified) {
  start_vendor(answer_plainly, "DNS:localhost");
  policy_.upstream = "https://localhost:" + std::to_string(vendor_->port());
  start_gateway();
  BoxClient box = client();
  box.send(post("/v1/messages", kAllowedBody));
  EXPECT_EQ(status_of(box.read_answer()), 200);
  ASSERT_EQ(vendor_->count(), 1U);
  EXPECT_EQ(vendor_->requests()[0].sni, "localhost");
}

TEST_F(GatewayTest, AVendorThatIsNotThereIsNamed) {
  start_vendor(answer_plainly);
  vendor_.reset();
  start_gateway();
  BoxClient box = client();
  box.send(post("/v1/messages", kAllowedBody));
  std::string answer = box.read_answer();
  EXPECT_EQ(status_of(answer), 502);
  EXPECT_NE(answer.find("vendor-unreachable"), std::string::npos);
  EXPECT_EQ(next_event().rule, "messages (vendor-unreachable)");
}

// D22: the other place is a server of the same kind, with a certificate that would be trusted.
TEST_F(GatewayTest, RedirectsAreNotFollowed) {
  Certificate certificate("IP:127.0.0.1");
  TlsVendor elsewhere(certificate, answer_plainly);
  std::string location = "https://127.0.0.1:" + std::to_string(elsewhere.port()) + "/v1/messages";
  start_vendor([location](const VendorRequest&, VendorConnection* connection) {
    connection->write("HTTP/1.1 307 Temporary Redirect\r\nLocation: " + location +
                      "\r\nContent-Length: 0\r\n\r\n");
  });
  ASSERT_TRUE(write_file_atomic(policy_.ca_bundle, certificate_->pem() + certificate.pem()).has_value());
  start_gateway();
  BoxClient box = client();
  box.send(post("/v1/messages", kAllowedBody));
  std::string answer = box.read_answer();
  EXPECT_EQ(status_of(answer), 502);
  EXPECT_NE(answer.find(R"("rule":"redirect")"), std::string::npos);
  EXPECT_EQ(answer.find("ocation"), std::string::npos);
  EXPECT_EQ(next_event().rule, "messages (redirect)");
  EXPECT_EQ(vendor_->count(), 1U);
  EXPECT_EQ(elsewhere.count(), 0U);

  policy_.upstream =
      "https://127.0.0.1:" + std::to_string(elsewhere.port());  // control: it could have been asked
  start_gateway();
  BoxClient control = client();
  control.send(post("/v1/messages", kAllowedBody));
  EXPECT_EQ(status_of(control.read_answer()), 200);
  EXPECT_EQ(elsewhere.count(), 1U);
}

TEST_F(GatewayTest, GarbageAndSilenceFromTheVendorAreNamed) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"SSH-2.0-vendor\r\n\r\n", "vendor-protocol"},
      {"", "vendor-reset"},
      {"HTTP/1.1 200 OK\r\nContent-Len", "vendor-reset"},
      {"HTTP/1.1 101 Switching Protocols\r\n\r\n", "vendor-protocol"},
      {"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 2\r\n\r\n{}", "vendor-protocol"},
      {"HTTP/1.1 200 OK\r\nContent-Length: 2000000000\r\n\r\n{}", "vendor-too-large"},
  };
  for (const auto& [bytes, kind] : cases) {
    std::string sent = bytes;
    start_vendor([sent](const VendorRequest&, VendorConnection* connection) {
      if (!sent.empty()) connection->write(sent);
    });
    start_gateway();
    BoxClient box = client();
    box.send(post("/v1/messages", kAllowedBody));
    std::string answer = box.read_answer();
    EXPECT_EQ(status_of(answer), 502) << bytes;
    EXPECT_NE(answer.find(kind), std::string::npos) << bytes << answer;
    EXPECT_EQ(next_event().rule, "messages (" + kind + ")") << bytes;
  }
}

// A stream that breaks off must not look like one that ended.
TEST_F(GatewayTest, ABrokenStreamIsNotCompleted) {
  start_vendor([](const VendorRequest&, VendorConnection* connection) {
    connection->write(
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n6\r\ndata: "
        "\r\n");
  });
  start_gateway();
  BoxClient box = client();
  box.send(post("/v1/messages", kAllowedBody));
  std::string answer = box.read_to_end();
  EXPECT_EQ(status_of(answer), 200);
  EXPECT_NE(answer.find("data: "), std::string::npos);
  EXPECT_EQ(answer.find("\r\n0\r\n\r\n"), std::string::npos);
  EXPECT_EQ(next_event().rule, "messages (vendor-reset)");
}

}  // namespace
}  // namespace cofferdam::egress::testing
