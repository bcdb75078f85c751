// How the vendor is reached: names, addresses, reuse, proxies, certificates, pace (attacks.md D9).
#include <atomic>
#include <future>

#include "base/io.h"
#include "egress/resolver.h"
#include "unit/egress/gateway_fixture.h"
#include "unit/egress/scripted_resolver.h"
#include "unit/egress/test_proxy.h"

namespace cofferdam::egress::testing {
namespace {

using std::chrono::milliseconds;

void answer_plainly(const VendorRequest&, VendorConnection* connection) {
  connection->write(json_answer("{}"));
}

void answer_and_keep(const VendorRequest&, VendorConnection* connection) {
  connection->write(json_answer("{}"));
  connection->keep_alive();
}

class TransportTest : public GatewayTest {
 protected:
  void name_upstream(const std::string& host) {
    policy_.upstream = "https://" + host + ":" + std::to_string(vendor_->port());
  }
  std::string ask() {
    BoxClient box = client();
    box.send(post("/v1/messages", kAllowedBody));
    return box.read_answer();
  }
  // The rule of what the gateway says about its failure.
  void expect_failure(const std::string& answer, int status, const std::string& rule) {
    EXPECT_EQ(status_of(answer), status) << answer;
    EXPECT_NE(body_of(answer).find("\"rule\":\"" + rule + "\""), std::string::npos) << answer;
  }
};

TEST_F(TransportTest, AConnectionIsUsedAgain) {
  start_vendor(answer_and_keep);
  start_gateway();
  for (int i = 0; i < 3; ++i) EXPECT_EQ(status_of(ask()), 200);
  EXPECT_EQ(vendor_->count(), 3U);
  EXPECT_EQ(vendor_->connections(), 1U);
}

TEST_F(TransportTest, WithoutKeepingEveryRequestHasItsOwn) {  // the control
  policy_.transport.keep_ms = 0;
  start_vendor(answer_and_keep);
  start_gateway();
  for (int i = 0; i < 3; ++i) EXPECT_EQ(status_of(ask()), 200);
  EXPECT_EQ(vendor_->connections(), 3U);
}

TEST_F(TransportTest, AnUnusedConnectionIsClosedInTime) {
  policy_.transport.keep_ms = 50;
  start_vendor(answer_and_keep);
  start_gateway();
  EXPECT_EQ(status_of(ask()), 200);
  EXPECT_TRUE(vendor_->wait_until_all_closed());
  EXPECT_EQ(status_of(ask()), 200);
  EXPECT_EQ(vendor_->connections(), 2U);
}

// The vendor drops the connection that was kept at the very moment the next request comes in: it may have
// been heard, so it is not sent again. The client's own second try gets a connection of its own.
TEST_F(TransportTest, NothingIsSentTwice) {
  std::atomic<int> requests = 0;
  start_vendor([&](const VendorRequest& request, VendorConnection* connection) {
    if (++requests == 2) return;  // closes without a word
    answer_and_keep(request, connection);
  });
  start_gateway();
  EXPECT_EQ(status_of(ask()), 200);
  expect_failure(ask(), 502, "vendor-reset");
  EXPECT_EQ(vendor_->count(), 2U);
  EXPECT_EQ(status_of(ask()), 200);
  EXPECT_EQ(vendor_->count(), 3U);
}

// One that was closed while nobody used it is noticed before anything is sent.
TEST_F(TransportTest, AClosedConnectionIsNotUsed) {
  start_vendor(answer_plainly);  // and closes, though it has not said so
  start_gateway();
  EXPECT_EQ(status_of(ask()), 200);
  ASSERT_TRUE(vendor_->wait_until_all_closed());
  EXPECT_EQ(status_of(ask()), 200);
  EXPECT_EQ(vendor_->connections(), 2U);
}

TEST_F(TransportTest, NothingIsSentTwiceOnceTheVendorHasBegunToAnswer) {
  std::atomic<int> requests = 0;
  start_vendor([&](const VendorRequest& request, VendorConnection* connection) {
    if (++requests == 2) {
      connection->write("HTTP/1.1 2");
      return;
    }
    answer_and_keep(request, connection);
  });
  start_gateway();
  EXPECT_EQ(status_of(ask()), 200);
  EXPECT_EQ(status_of(ask()), 502);
  EXPECT_EQ(vendor_->count(), 2U);
}

TEST_F(TransportTest, TheNextAddressIsTried) {
  start_vendor(answer_plainly);
  name_upstream("localhost");
  script_resolver("localhost ::1 127.0.0.1\n");  // nobody listens on [::1]
  start_gateway();
  EXPECT_EQ(status_of(ask()), 200);
  EXPECT_EQ(vendor_->requests()[0].sni, "localhost");
}

TEST_F(TransportTest, ANameThatPointsInsideIsRefused) {
  start_vendor(answer_plainly, "DNS:vendor.test,DNS:localhost");
  for (const char* answers : {"10.0.0.1", "127.0.0.1", "169.254.169.254", "::ffff:127.0.0.1", "fd00::1",
                              "8.8.8.8 127.0.0.1", "127.0.0.1 8.8.8.8", "0.0.0.0", "224.0.0.1"}) {
    name_upstream("vendor.test");
    script_resolver(std::string("vendor.test ") + answers + "\n");
    start_gateway();
    expect_failure(ask(), 502, "vendor-address");
    EXPECT_EQ(next_event().rule, "messages (vendor-address)");
  }
  EXPECT_EQ(vendor_->connections(), 0U);
  name_upstream("localhost");  // control: the one name that may be loopback
  script_resolver("localhost 127.0.0.1\n");
  start_gateway();
  EXPECT_EQ(status_of(ask()), 200);
}

// D9: what was checked is what is dialled; a later answer is asked for only after all addresses failed, and
// is checked again.
TEST_F(TransportTest, RebindingFindsNobody) {
  policy_.transport.keep_ms = 0;
  start_vendor(answer_plainly);
  name_upstream("localhost");
  script_resolver("localhost 127.0.0.1\nlocalhost 169.254.169.254\n");
  start_gateway();
  for (int i = 0; i < 3; ++i) EXPECT_EQ(status_of(ask()), 200);
  EXPECT_EQ(queries_in(dir_->path()), std::vector<std::string>{"localhost"});
  vendor_.reset();
  expect_failure(ask(), 502, "vendor-unreachable");
  expect_failure(ask(), 502, "vendor-address");
  EXPECT_EQ(queries_in(dir_->path()).size(), 2U);
}

TEST_F(TransportTest, AResolverThatIsGoneMeansUnreachable) {
  start_vendor(answer_plainly);
  name_upstream("localhost");
  script_resolver("localhost\n");
  start_gateway();
  expect_failure(ask(), 502, "vendor-unreachable");
  EXPECT_EQ(vendor_->connections(), 0U);
}

TEST_F(TransportTest, TheHeadOfAnAnswerHasATime) {
  policy_.transport.head_ms = 100;
  start_vendor([](const VendorRequest&, VendorConnection* connection) { connection->wait_for_close(); });
  start_gateway();
  expect_failure(ask(), 504, "vendor-timeout");
  EXPECT_EQ(next_event().rule, "messages (vendor-timeout)");
}

// A box that does not read makes the vendor wait; nothing piles up in between.
TEST_F(TransportTest, ASlowReaderSlowsTheVendorDown) {
  constexpr std::size_t kTotal = 96U << 20U;
  policy_.transport.answer_bytes = 2 * kTotal;
  std::promise<std::size_t> first;
  std::promise<std::size_t> second;
  std::atomic<int> requests = 0;
  start_vendor([&](const VendorRequest&, VendorConnection* connection) {
    connection->write("HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(kTotal) + "\r\n\r\n");
    const bool slow = ++requests == 1;
    if (slow) connection->limit_writes(milliseconds(500));
    const std::string block(16384, 'x');
    std::size_t written = 0;
    while (written < kTotal && connection->write(block)) written += block.size();
    (slow ? first : second).set_value(written);
  });
  start_gateway();
  BoxClient stuck = client();
  stuck.send(post("/v1/messages", kAllowedBody));
  EXPECT_EQ(status_of(stuck.read_until("\r\n\r\n")), 200);
  EXPECT_LT(first.get_future().get(), kTotal / 2);
  BoxClient reading = client();  // the control
  reading.send(post("/v1/messages", kAllowedBody));
  EXPECT_EQ(body_of(reading.read_answer()).size(), kTotal);
  EXPECT_EQ(second.get_future().get(), kTotal);
}

TEST_F(TransportTest, GoesThroughAProxyThatSeesNothing) {
  start_vendor(answer_and_keep, "DNS:vendor.test");
  TestProxy proxy(vendor_->port(), "HTTP/1.1 200 Connection established\r\n\r\n");
  name_upstream("vendor.test");  // resolved by nobody but the proxy
  policy_.transport.proxy = "http://127.0.0.1:" + std::to_string(proxy.port());
  start_gateway();
  for (int i = 0; i < 2; ++i) EXPECT_EQ(status_of(ask()), 200);
  const std::string authority = "vendor.test:" + std::to_string(vendor_->port());
  EXPECT_EQ(proxy.heads(), std::vector<std::string>{"CONNECT " + authority +
                                                    " HTTP/1.1\r\nHost: " + authority + "\r\n\r\n"});
  EXPECT_EQ(vendor_->requests()[0].sni, "vendor.test");
  expect_no_secret(proxy.seen());
  EXPECT_EQ(proxy.seen().find("x-api-key"), std::string::npos);
}

TEST_F(TransportTest, AProxyThatRefusesOrCheatsGetsNothing) {
  start_vendor(answer_plainly, "DNS:vendor.test");
  Certificate other("DNS:vendor.test");
  TlsVendor impostor(other, answer_plainly);
  struct Case {
    std::uint16_t port;
    std::string answer;
    const char* rule;
  };
  const std::vector<Case> cases = {
      {vendor_->port(), "HTTP/1.1 403 Forbidden\r\n\r\n", "vendor-proxy"},
      {vendor_->port(), "HTTP/1.1 407 Proxy Authentication Required\r\n\r\n", "vendor-proxy"},
      {vendor_->port(), "HTTP/1.1 200 OK\r\n\r\nmore", "vendor-proxy"},
      {vendor_->port(), "220 smtp\r\n\r\n", "vendor-proxy"},
      {impostor.port(), "HTTP/1.1 200 OK\r\n\r\n", "vendor-tls"},
  };
  for (const Case& c : cases) {
    TestProxy proxy(c.port, c.answer);
    name_upstream("vendor.test");
    policy_.transport.proxy = "http://127.0.0.1:" + std::to_string(proxy.port());
    start_gateway();
    expect_failure(ask(), 502, c.rule);
    gateway_.reset();
  }
  EXPECT_EQ(vendor_->count() + impostor.count(), 0U);
}

TEST_F(TransportTest, CertificatesAreReplacedOrAdded) {
  start_vendor(answer_plainly);
  const std::string right = policy_.ca_bundle;
  const std::string wrong = dir_->path() + "/other.pem";
  ASSERT_TRUE(write_file_atomic(wrong, Certificate("DNS:other.test").pem()).has_value());
  policy_.ca_bundle = wrong;
  start_gateway();
  expect_failure(ask(), 502, "vendor-tls");
  policy_.transport.extra_ca_bundle = right;
  start_gateway();
  EXPECT_EQ(status_of(ask()), 200);
  policy_.transport.extra_ca_bundle = dir_->path() + "/missing.pem";
  auto missing = try_gateway();
  ASSERT_FALSE(missing.has_value());
  EXPECT_NE(missing.error().line().find("missing.pem"), std::string::npos);
}

TEST_F(TransportTest, AnExtraCertificateStandsBesideTheSystems) {
  if (!exists("/etc/ssl/certs/ca-certificates.crt")) GTEST_SKIP() << "this host has no certificates";
  start_vendor(answer_plainly);
  policy_.transport.extra_ca_bundle = policy_.ca_bundle;
  policy_.ca_bundle.clear();
  start_gateway();
  EXPECT_EQ(status_of(ask()), 200);
  policy_.transport.extra_ca_bundle.clear();  // control: the system's alone do not know it
  start_gateway();
  expect_failure(ask(), 502, "vendor-tls");
}

// D1: only what the supervisor named is ever looked up, by a process that gets no other list.
TEST(Resolver, AnswersOnlyForItsList) {
  auto sockets = make_seqpacket_pair();
  ASSERT_TRUE(sockets.has_value());
  auto self = real_path("/proc/self/exe");
  ASSERT_TRUE(self.has_value());
  SpawnOptions options;
  options.program = *self;
  options.argv = {*self, "internal-resolver"};
  options.fds = {{2, 2}, {sockets->theirs.get(), 3}};
  auto child = spawn(options);
  ASSERT_TRUE(child.has_value());
  sockets->theirs.reset();
  const int socket = sockets->ours.get();
  ASSERT_TRUE(send_message(socket, encode_resolver_setup({{"localhost"}, {}})).has_value());
  auto answer_to = [&](const std::string& host) {
    EXPECT_TRUE(send_message(socket, encode_resolver_query({7, host})).has_value());
    auto message = receive_message(socket, kMaxResolverMessage);
    auto answer = decode_resolver_answer(message ? message->bytes : "");
    EXPECT_TRUE(answer.has_value());
    EXPECT_EQ(answer ? answer->id : 0, 7U);
    return answer ? answer->addresses : std::vector<std::string>();
  };
  EXPECT_FALSE(answer_to("localhost").empty());
  EXPECT_TRUE(answer_to("127.0.0.1").empty());
  EXPECT_TRUE(answer_to("secret.attacker.test").empty());
  sockets->ours.reset();
  auto status = child->wait(std::chrono::seconds(20));
  ASSERT_TRUE(status.has_value());
  EXPECT_TRUE(status->success());
}

}  // namespace
}  // namespace cofferdam::egress::testing
