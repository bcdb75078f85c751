// The allow-list's decisions as a table: attacks.md D4, D7, D10, D11, D14, D25.
#include "egress/tunnel_policy.h"

#include <gtest/gtest.h>

namespace cofferdam::egress {
namespace {

const std::vector<Destination>& list() {
  static const std::vector<Destination> destinations = [] {
    Destination registry;
    registry.host = "registry.test";
    Destination odd;
    odd.host = "odd.test";
    odd.port = 8443;
    Destination mirror;
    mirror.host = "mirror.test";
    mirror.port = 80;
    mirror.plain = true;
    return std::vector<Destination>{registry, odd, mirror};
  }();
  return destinations;
}

TunnelDecision decide(const std::string& method, const std::string& target, const std::string& host,
                      const std::vector<Destination>& destinations = list()) {
  ParsedHead parsed = parse_request_head(method + " " + target + " HTTP/1.1\r\nHost: " + host + "\r\n\r\n",
                                         TargetForm::proxy);
  if (parsed.refusal) return {nullptr, parsed.refusal->rule, parsed.refusal->status};
  return decide_tunnel(destinations, parsed.head);
}

std::string rule_for(const std::string& authority) {
  TunnelDecision decision = decide("CONNECT", authority, authority);
  return (decision.destination == nullptr ? "no " : "yes ") + decision.rule;
}

TEST(TunnelPolicy, ExactHostAndPort) {  // D4, D11
  EXPECT_EQ(rule_for("registry.test:443"), "yes tunnel");
  EXPECT_EQ(rule_for("Registry.TEST:443"), "yes tunnel");
  EXPECT_EQ(rule_for("odd.test:8443"), "yes tunnel");
  EXPECT_EQ(rule_for("example.com:443"), "no tunnel: destination");
  EXPECT_EQ(rule_for("sub.registry.test:443"), "no tunnel: destination");
  EXPECT_EQ(rule_for("xregistry.test:443"), "no tunnel: destination");
  EXPECT_EQ(rule_for("registry.test.evil.test:443"), "no tunnel: destination");
  EXPECT_EQ(rule_for("localhost:443"), "no tunnel: destination");
  for (const char* port : {"80", "8443", "22", "0", "0443", "65979", "443 ", "+443", "4 43", ""}) {
    EXPECT_EQ(rule_for("registry.test:" + std::string(port)).substr(0, 3), "no ") << port;
  }
  EXPECT_EQ(rule_for("registry.test"), "no tunnel: port");
}

TEST(TunnelPolicy, AddressesInEverySpelling) {  // D10, D14
  for (const char* host :
       {"127.0.0.1", "2130706433", "0x7f000001", "127.1", "0177.0.0.1", "0X7F.0.0.1", "[::1]",
        "[::ffff:127.0.0.1]", "[fe80::1%25lo]", "::1", "1.2.3.4", "[2001:db8::1]", "0", "1.2.3.0x4"}) {
    EXPECT_EQ(rule_for(std::string(host) + ":443"), "no tunnel: address") << host;
  }
  for (const char* host : {"registry.test.", "localhost.", "user@registry.test", "registry.test@evil.test",
                           "registry%2etest", "registry_test", "-registry.test", "registry..test", "*"}) {
    EXPECT_EQ(rule_for(std::string(host) + ":443").substr(0, 3), "no ") << host;
  }
  EXPECT_EQ(rule_for("registry.test\xC2\xAD:443"), "no http: target");  // a soft hyphen
  EXPECT_EQ(rule_for("r\xC3\xA9gistry.test:443"), "no http: target");
}

TEST(TunnelPolicy, EmptyMeansNobody) {  // D25
  EXPECT_EQ(decide("CONNECT", "registry.test:443", "registry.test:443", {}).rule, "tunnel: destination");
  EXPECT_EQ(decide("GET", "http://mirror.test/", "mirror.test", {}).rule, "tunnel: destination");
  Destination nobody;  // cannot be configured, and would match nothing
  EXPECT_EQ(decide("CONNECT", ":443", ":443", {nobody}).destination, nullptr);
}

TEST(TunnelPolicy, OneAuthorityPerRequest) {
  EXPECT_EQ(decide("CONNECT", "registry.test:443", "evil.test:443").rule, "tunnel: host field");
  EXPECT_EQ(decide("CONNECT", "registry.test:443", "registry.test").rule, "tunnel");
  EXPECT_EQ(decide("GET", "http://mirror.test/x", "evil.test").rule, "tunnel: host field");
}

TEST(TunnelPolicy, PlainOnlyWhereItIsSaid) {  // D3
  TunnelDecision decision = decide("GET", "http://mirror.test/a/b?c", "mirror.test");
  ASSERT_NE(decision.destination, nullptr);
  EXPECT_EQ(decision.target, "/a/b?c");
  EXPECT_EQ(decide("GET", "http://mirror.test", "mirror.test").target, "/");
  EXPECT_EQ(decide("HEAD", "http://mirror.test:80/", "mirror.test:80").rule, "plain");
  EXPECT_EQ(decide("GET", "http://registry.test:443/", "registry.test:443").rule, "tunnel: not plain");
  EXPECT_EQ(decide("CONNECT", "mirror.test:80", "mirror.test:80").rule, "tunnel: plain only");
  EXPECT_EQ(decide("GET", "http://denied.test/?token=x", "denied.test").rule, "tunnel: destination");
  EXPECT_EQ(decide("GET", "https://registry.test/", "registry.test").rule, "tunnel: scheme");
  EXPECT_EQ(decide("POST", "http://mirror.test/", "mirror.test").rule, "tunnel: method");
  EXPECT_EQ(decide("GET", "http://user@mirror.test/", "user@mirror.test").destination, nullptr);
  EXPECT_EQ(decide("GET", "http://127.0.0.1/", "127.0.0.1").rule, "tunnel: address");
  EXPECT_EQ(decide("GET", "/path", "mirror.test").rule, "http: origin-form");
}

TEST(TunnelPolicy, TheHelloNamesTheVeryHost) {  // D7
  using State = ClientHello::State;
  const Destination& to = list()[0];
  EXPECT_EQ(judge_hello(to, {State::done, "registry.test", false}), "");
  EXPECT_EQ(judge_hello(to, {State::done, "Registry.Test", false}), "");
  EXPECT_EQ(judge_hello(to, {State::done, "evil.test", false}), "tunnel: sni");
  EXPECT_EQ(judge_hello(to, {State::done, "registry.test.", false}), "tunnel: sni");
  EXPECT_EQ(judge_hello(to, {State::done, std::string("registry.test\0.evil.test", 23), false}),
            "tunnel: sni");
  EXPECT_EQ(judge_hello(to, {State::done, std::nullopt, false}), "tunnel: no sni");
  EXPECT_EQ(judge_hello(to, {State::done, "registry.test", true}), "tunnel: ech");
  EXPECT_EQ(judge_hello(to, {State::bad, {}, false}), "tunnel: not tls");
  EXPECT_EQ(judge_hello(to, {State::more, {}, false}), "tunnel: not tls");
}

}  // namespace
}  // namespace cofferdam::egress
