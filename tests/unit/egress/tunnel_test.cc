// The allow-list mode over the wire, with two TLS servers: the listed one and the decoy (attacks.md D4, D7).
#include <openssl/ssl.h>
#include <sys/socket.h>

#include "base/file.h"
#include "base/io.h"
#include "unit/egress/gateway_fixture.h"
#include "unit/egress/scripted_resolver.h"

namespace cofferdam::egress::testing {
namespace {

void answer_plainly(const VendorRequest&, VendorConnection* connection) {
  connection->write(json_answer("{\"from\":\"listed\"}"));
}

class TunnelTest : public GatewayTest {
 protected:
  void SetUp() override {
    GatewayTest::SetUp();
    start_vendor(answer_plainly);
    listed_ = std::make_unique<TlsVendor>(*certificate_, answer_plainly);
    decoy_ = std::make_unique<TlsVendor>(*certificate_, answer_plainly);
    destination_.host = "registry.test";
    destination_.port = listed_->port();
    destination_.addresses = {"127.0.0.0/8"};
  }
  void start() {
    script_resolver(answers_);
    policy_.transport.destinations = {destination_};
    UniqueFd vendor = listen_on_loopback(&port_);
    UniqueFd tunnels = listen_on_loopback(&tunnel_port_);
    auto gateway =
        Gateway::start(program_, policy_, GatewayEnds{broker_end(), std::move(vendor), std::move(tunnels)});
    ASSERT_TRUE(gateway.has_value()) << gateway.error().line();
    gateway_.emplace(std::move(*gateway));
  }
  std::string authority(std::uint16_t port) const { return "registry.test:" + std::to_string(port); }
  static std::string connect_head(const std::string& authority) {
    return "CONNECT " + authority + " HTTP/1.1\r\nHost: " + authority + "\r\n\r\n";
  }
  // A whole HTTPS request through the proxy; "" when the tunnel was closed on it.
  std::string ask(const std::string& sni, std::size_t body = 0) {
    BoxClient box(tunnel_port_);
    box.send(connect_head(authority(destination_.port)));
    if (status_of(box.read_until("\r\n\r\n")) != 200) return "refused";
    std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context(::SSL_CTX_new(::TLS_client_method()),
                                                              &SSL_CTX_free);
    std::unique_ptr<SSL, decltype(&SSL_free)> ssl(::SSL_new(context.get()), &SSL_free);
    ::SSL_set_fd(ssl.get(), box.descriptor());
    std::string name = sni;
    if (!sni.empty()) {
      ::SSL_ctrl(ssl.get(), SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name, name.data());
    }
    if (::SSL_connect(ssl.get()) != 1) return "";
    std::string request = post("/package", std::string(body, 'x'));
    for (char& c : request) c = c == 'L' ? 'l' : c == 'C' ? 'c' : c;  // the test server reads lower case
    (void)::SSL_write(ssl.get(), request.data(), static_cast<int>(request.size()));
    std::string out;
    char buffer[4096];
    for (int n = ::SSL_read(ssl.get(), buffer, sizeof buffer); n > 0;
         n = ::SSL_read(ssl.get(), buffer, sizeof buffer)) {
      out.append(buffer, static_cast<std::size_t>(n));
    }
    return out;
  }
  std::size_t dialled() { return listed_->connections() + decoy_->connections() + vendor_->connections(); }

  std::string answers_ = "registry.test 127.0.0.1\n";
  Destination destination_;
  std::unique_ptr<TlsVendor> listed_;
  std::unique_ptr<TlsVendor> decoy_;
  std::uint16_t tunnel_port_ = 0;
};

TEST_F(TunnelTest, CarriesTlsToTheListedHost) {
  start();
  EXPECT_NE(ask("registry.test").find("listed"), std::string::npos);
  ASSERT_EQ(listed_->count(), 1U);
  EXPECT_EQ(listed_->requests()[0].sni, "registry.test");
  GatewayEvent event = next_event();
  EXPECT_EQ(event.method, "CONNECT");
  EXPECT_EQ(event.path, authority(destination_.port));
  EXPECT_EQ(event.rule, "tunnel");
  EXPECT_FALSE(event.denied);
  EXPECT_GT(event.request_bytes, 0U);
  EXPECT_GT(event.response_bytes, 0U);
  EXPECT_EQ(decoy_->connections(), 0U);
}

// D4, D10, D11: refused before anything is looked up or dialled.
TEST_F(TunnelTest, NothingElseIsLookedUpOrDialled) {
  start();
  for (const std::string& target :
       {std::string("decoy.test:443"), authority(decoy_->port()), authority(vendor_->port()),
        "127.0.0.1:" + std::to_string(decoy_->port()), "localhost:" + std::to_string(decoy_->port()),
        "2130706433:" + std::to_string(decoy_->port()), "[::1]:" + std::to_string(decoy_->port())}) {
    BoxClient box(tunnel_port_);
    box.send(connect_head(target));
    std::string answer = box.read_to_end();
    EXPECT_EQ(status_of(answer), 403) << target;
    EXPECT_NE(answer.find("denied by Cofferdam policy"), std::string::npos);
    GatewayEvent event = next_event();
    EXPECT_TRUE(event.denied);
    EXPECT_EQ(event.path, target);
  }
  EXPECT_EQ(dialled(), 0U);
  EXPECT_TRUE(queries_in(dir_->path()).empty());
  EXPECT_NE(ask("registry.test"), "");  // the control
  EXPECT_EQ(queries_in(dir_->path()), std::vector<std::string>{"registry.test"});
}

// D7: the name inside the tunnel decides, and nobody is dialled for another one.
TEST_F(TunnelTest, AnotherNameInsideClosesTheTunnel) {
  start();
  for (const auto& [sni, rule] :
       std::vector<std::pair<std::string, std::string>>{{"decoy.test", "tunnel: sni"},
                                                        {"", "tunnel: no sni"},
                                                        {"registry.test.evil.test", "tunnel: sni"}}) {
    EXPECT_EQ(ask(sni), "") << sni;
    GatewayEvent event = next_event();
    EXPECT_EQ(event.rule, rule);
    EXPECT_TRUE(event.denied);
  }
  BoxClient box(tunnel_port_);
  box.send(connect_head(authority(destination_.port)) + "GET / HTTP/1.1\r\n\r\n");
  EXPECT_EQ(box.read_to_end().find("listed"), std::string::npos);
  EXPECT_EQ(next_event().rule, "tunnel: not tls");
  EXPECT_EQ(dialled(), 0U);
  EXPECT_NE(ask("registry.test"), "");  // the control
}

// One request was judged; what else is sent on that connection reaches nobody.
TEST_F(TunnelTest, APlainConnectionCarriesOneRequest) {
  const UniqueFd server = listen_on_loopback(&destination_.port);
  destination_.plain = true;
  start();
  BoxClient box(tunnel_port_);
  const std::string host = authority(destination_.port);
  box.send("GET http://" + host + "/first HTTP/1.1\r\nHost: " + host + "\r\nUpgrade: h2c\r\n\r\n");
  const UniqueFd peer(::accept4(server.get(), nullptr, nullptr, SOCK_CLOEXEC));
  ASSERT_TRUE(peer.valid());
  box.send("POST /upload HTTP/1.1\r\nHost: other.test\r\nContent-Length: 6\r\n\r\nsecret");
  ::shutdown(box.descriptor(), SHUT_WR);
  std::string seen;
  char buffer[4096];
  constexpr std::string_view answer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi";
  while (seen.find("\r\n\r\n") == std::string::npos) {
    const ssize_t n = ::recv(peer.get(), buffer, sizeof buffer, 0);
    ASSERT_GT(n, 0);
    seen.append(buffer, static_cast<std::size_t>(n));
  }
  ASSERT_EQ(::send(peer.get(), answer.data(), answer.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(answer.size()));
  ::shutdown(peer.get(), SHUT_WR);
  EXPECT_NE(box.read_to_end().find("hi"), std::string::npos);
  for (ssize_t n = ::recv(peer.get(), buffer, sizeof buffer, 0); n > 0;
       n = ::recv(peer.get(), buffer, sizeof buffer, 0)) {
    seen.append(buffer, static_cast<std::size_t>(n));
  }
  EXPECT_EQ(seen.rfind("GET /first HTTP/1.1\r\n", 0), 0U) << seen;
  EXPECT_EQ(seen.find("secret"), std::string::npos);
  EXPECT_EQ(seen.find("h2c"), std::string::npos);
}

TEST_F(TunnelTest, AnAddressOutsideTheRangesIsRefused) {
  destination_.addresses = {};
  start();
  EXPECT_EQ(ask("registry.test"), "");
  EXPECT_EQ(next_event().rule, "tunnel: destination's address");
  destination_.addresses = {"10.0.0.0/8"};
  start();
  EXPECT_EQ(ask("registry.test"), "");
  EXPECT_EQ(next_event().rule, "tunnel: destination's address");
  EXPECT_EQ(dialled(), 0U);
  destination_.addresses = {"10.0.0.0/8", "127.0.0.1/32"};  // the control
  start();
  EXPECT_NE(ask("registry.test"), "");
}

TEST_F(TunnelTest, BytesAreBoundedInBothDirections) {
  destination_.max_sent = 4000;
  start();
  EXPECT_NE(ask("registry.test"), "");  // the control, and what it used counts
  EXPECT_EQ(next_event().rule, "tunnel");
  EXPECT_EQ(ask("registry.test", 8000), "");
  GatewayEvent event = next_event();
  EXPECT_EQ(event.rule, "tunnel: bytes sent");
  EXPECT_TRUE(event.limit);
  EXPECT_EQ(listed_->count(), 1U);
  destination_.max_sent = 1U << 20U;
  destination_.max_received = 100;
  start();
  EXPECT_EQ(ask("registry.test"), "");
  EXPECT_EQ(next_event().rule, "tunnel: bytes received");
}

TEST_F(TunnelTest, TheVendorsListenerIsNoProxyAndTheProxyIsNoVendor) {
  start();
  BoxClient vendor = client();
  vendor.send(connect_head(authority(destination_.port)));
  EXPECT_EQ(status_of(vendor.read_to_end()), 405);
  BoxClient proxy(tunnel_port_);
  proxy.send(post("/v1/messages", kAllowedBody));
  EXPECT_EQ(status_of(proxy.read_to_end()), 400);
  EXPECT_EQ(dialled(), 0U);
}

// Egress none with destinations: no vendor, no broker, no listener of its own.
TEST_F(TunnelTest, WorksWithoutAVendor) {
  script_resolver(answers_);
  policy_ = GatewayPolicy{};
  policy_.transport.destinations = {destination_};
  GatewayEnds ends;
  ends.tunnels = listen_on_loopback(&tunnel_port_);
  auto gateway = Gateway::start(program_, policy_, std::move(ends));
  ASSERT_TRUE(gateway.has_value()) << gateway.error().line();
  gateway_.emplace(std::move(*gateway));
  EXPECT_NE(ask("registry.test").find("listed"), std::string::npos);
  GatewayEvent event = next_event();
  EXPECT_TRUE(event.tunnelled);
  EXPECT_EQ(event.host, "registry.test");
  EXPECT_EQ(event.port, destination_.port);
  BoxClient other(tunnel_port_);
  other.send(connect_head("decoy.test:443"));
  EXPECT_EQ(status_of(other.read_to_end()), 403);
  event = next_event();
  EXPECT_EQ(event.host, "decoy.test");
  EXPECT_EQ(event.port, 443);
  EXPECT_EQ(queries_in(dir_->path()), std::vector<std::string>{"registry.test"});
}

TEST_F(TunnelTest, AVendorNeedsItsListener) {
  policy_.transport.destinations = {destination_};
  GatewayEnds ends;
  ends.broker = broker_end();
  ends.tunnels = listen_on_loopback(&tunnel_port_);
  auto self = real_path("/proc/self/exe");
  ASSERT_TRUE(self.has_value());
  EXPECT_FALSE(Gateway::start(*self, policy_, std::move(ends)).has_value());
}

class CredentialTunnelTest : public TunnelTest {
 protected:
  void SetUp() override {
    TunnelTest::SetUp();
    own_certificate_.emplace("DNS:registry.test");
    private_ =
        std::make_unique<TlsVendor>(*own_certificate_, [this](const VendorRequest&, VendorConnection* to) {
          to->write(status_ == 200 ? json_answer("{\"from\":\"private\"}")
                                   : "HTTP/1.1 401 Unauthorized\r\ncontent-length: 0\r\n\r\n");
        });
    destination_.port = private_->port();
    destination_.credential = "packages";
    destination_.ca_bundle = dir_->path() + "/own.pem";
    ASSERT_TRUE(write_file_atomic(destination_.ca_bundle, own_certificate_->pem()).has_value());
  }
  void start_private() {
    script_resolver(answers_);
    policy_ = GatewayPolicy{};
    policy_.transport.destinations = {destination_};
    auto sockets = make_seqpacket_pair();
    ASSERT_TRUE(sockets.has_value());
    VendorCredential credential;
    credential.kind = CredentialKind::bearer;
    credential.token = Secret(kCredential);
    credential.seq = 1;
    ASSERT_TRUE(send_message(sockets->ours.get(), encode_grant(credential).view()).has_value());
    destination_broker_ = std::move(sockets->ours);
    GatewayEnds ends;
    ends.tunnels = listen_on_loopback(&tunnel_port_);
    ends.destination_brokers.push_back(std::move(sockets->theirs));
    auto gateway = Gateway::start(program_, policy_, std::move(ends));
    ASSERT_TRUE(gateway.has_value()) << gateway.error().line();
    gateway_.emplace(std::move(*gateway));
  }
  std::string get(const std::string& authority, const std::string& more = {}) {
    BoxClient box(tunnel_port_);
    box.send("GET http://" + authority + "/p?q=1 HTTP/1.1\r\nHost: " + authority + "\r\n" + more + "\r\n");
    return box.read_to_end();
  }
  std::optional<Certificate> own_certificate_;
  std::unique_ptr<TlsVendor> private_;
  UniqueFd destination_broker_;
  int status_ = 200;
};

TEST_F(CredentialTunnelTest, IsSetOverTlsOfOurOwn) {
  start_private();
  std::string answer =
      get(authority(destination_.port),
          "Authorization: Basic bWluZTptaW5l\r\nCookie: mine=1\r\nProxy-Authorization: mine\r\n");
  EXPECT_EQ(status_of(answer), 200);
  EXPECT_NE(answer.find("private"), std::string::npos);
  ASSERT_EQ(private_->count(), 1U);
  const VendorRequest request = private_->requests()[0];
  EXPECT_EQ(request.sni, "registry.test");
  EXPECT_EQ(request.head.find("GET /p?q=1 HTTP/1.1\r\nhost: " + authority(destination_.port) + "\r\n"), 0U);
  EXPECT_NE(request.head.find(std::string("authorization: Bearer ") + kCredential + "\r\n"),
            std::string::npos);
  EXPECT_EQ(request.head.find("mine"), std::string::npos) << request.head;
  EXPECT_EQ(request.head.find("bWlu"), std::string::npos) << request.head;
  GatewayEvent event = next_event();
  EXPECT_EQ(event.rule, "credential");
  EXPECT_FALSE(event.denied);
  EXPECT_GT(event.response_bytes, 0U);
}

TEST_F(CredentialTunnelTest, GoesToNobodyElse) {
  start_private();
  EXPECT_EQ(status_of(get(authority(decoy_->port()))), 403);
  EXPECT_EQ(status_of(get("decoy.test:" + std::to_string(destination_.port))), 403);
  EXPECT_EQ(status_of(get("registry.test")), 403) << "port 80";
  BoxClient tunnel(tunnel_port_);
  tunnel.send(connect_head(authority(destination_.port)));
  EXPECT_EQ(status_of(tunnel.read_to_end()), 403);
  EXPECT_TRUE(queries_in(dir_->path()).empty());
  EXPECT_EQ(private_->connections() + dialled(), 0U);
  EXPECT_EQ(status_of(get(authority(destination_.port))), 200) << "the control";
}

TEST_F(CredentialTunnelTest, AnUnverifiedServerGetsNothing) {
  ASSERT_TRUE(write_file_atomic(destination_.ca_bundle, Certificate("DNS:registry.test").pem()).has_value());
  start_private();
  EXPECT_EQ(status_of(get(authority(destination_.port))), 502);
  EXPECT_EQ(next_event().rule, "tunnel: tls");
  EXPECT_EQ(private_->count(), 0U);
}

TEST_F(CredentialTunnelTest, TheBrokerIsToldWhenItIsRejected) {
  status_ = 401;
  start_private();
  EXPECT_EQ(status_of(get(authority(destination_.port))), 401);
  auto message = receive_message(destination_broker_.get(), 256);
  ASSERT_TRUE(message.has_value());
  auto request = decode_renewal_request(message->bytes);
  ASSERT_TRUE(request.has_value()) << message->bytes;
  EXPECT_TRUE(request->rejected);
  EXPECT_EQ(request->seq, 1U);
}

TEST_F(TunnelTest, MalformedDestinationsAreNotStarted) {
  for (const char* host : {"127.0.0.1", "Registry.test", "*.test", "registry.test.", ""}) {
    destination_.host = host;
    policy_.transport.destinations = {destination_};
    EXPECT_FALSE(try_gateway().has_value()) << host;
  }
  destination_.host = "registry.test";
  destination_.addresses = {"10.0.0.0/33"};
  policy_.transport.destinations = {destination_};
  EXPECT_FALSE(try_gateway().has_value());
}

}  // namespace
}  // namespace cofferdam::egress::testing
