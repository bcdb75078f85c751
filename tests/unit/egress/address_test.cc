// Which addresses the gateway may dial, and how an upstream may be written (attacks.md D9, D10, D14).
#include "egress/address.h"

#include <gtest/gtest.h>

#include "egress/origin.h"

namespace cofferdam::egress {
namespace {

AddressKind kind_of(const char* text) {
  auto bytes = parse_address_literal(text);
  EXPECT_TRUE(bytes.has_value()) << text;
  return bytes ? classify_address(*bytes) : AddressKind::reserved;
}

TEST(Address, Kinds) {
  const std::pair<const char*, AddressKind> cases[] = {
      {"8.8.8.8", AddressKind::global},
      {"160.79.104.10", AddressKind::global},
      {"172.15.255.255", AddressKind::global},
      {"172.32.0.0", AddressKind::global},
      {"100.63.255.255", AddressKind::global},
      {"100.128.0.0", AddressKind::global},
      {"127.0.0.1", AddressKind::loopback},
      {"127.255.255.254", AddressKind::loopback},
      {"10.0.0.1", AddressKind::private_use},
      {"172.16.0.1", AddressKind::private_use},
      {"172.31.255.255", AddressKind::private_use},
      {"192.168.1.1", AddressKind::private_use},
      {"100.64.0.1", AddressKind::private_use},
      {"169.254.169.254", AddressKind::link_local},
      {"224.0.0.1", AddressKind::multicast},
      {"239.255.255.255", AddressKind::multicast},
      {"0.0.0.0", AddressKind::reserved},
      {"255.255.255.255", AddressKind::reserved},
      {"198.18.0.1", AddressKind::reserved},
      {"203.0.113.9", AddressKind::reserved},
      {"2606:4700::1", AddressKind::global},
      {"::1", AddressKind::loopback},
      {"fe80::1", AddressKind::link_local},
      {"febf::1", AddressKind::link_local},
      {"fc00::1", AddressKind::private_use},
      {"fdff::1", AddressKind::private_use},
      {"fec0::1", AddressKind::private_use},
      {"ff02::1", AddressKind::multicast},
      {"::", AddressKind::reserved},
      {"2001:db8::1", AddressKind::reserved},
      {"2001::1", AddressKind::reserved},  // Teredo
      {"4000::1", AddressKind::reserved},
      // Other spellings of an IPv4 address.
      {"::ffff:127.0.0.1", AddressKind::loopback},
      {"::ffff:169.254.169.254", AddressKind::link_local},
      {"::ffff:8.8.8.8", AddressKind::global},
      {"::10.0.0.1", AddressKind::private_use},
      {"64:ff9b::10.0.0.1", AddressKind::private_use},
      {"64:ff9b::8.8.8.8", AddressKind::global},
      {"2002:7f00:1::", AddressKind::loopback},
      {"2002:a9fe:a9fe::", AddressKind::link_local},
  };
  for (const auto& [text, kind] : cases) {
    EXPECT_STREQ(address_kind_name(kind_of(text)), address_kind_name(kind)) << text;
  }
  const std::uint8_t three[] = {8, 8, 8};
  EXPECT_EQ(classify_address(three), AddressKind::reserved);
}

TEST(Address, OnlyWhatWasConfiguredMayBeInside) {
  EXPECT_TRUE(may_dial(AddressKind::global, "api.vendor.test"));
  for (AddressKind kind : {AddressKind::loopback, AddressKind::private_use, AddressKind::link_local,
                           AddressKind::multicast, AddressKind::reserved}) {
    EXPECT_FALSE(may_dial(kind, "api.vendor.test")) << address_kind_name(kind);
  }
  EXPECT_TRUE(may_dial(AddressKind::loopback, "localhost"));
  EXPECT_FALSE(may_dial(AddressKind::private_use, "localhost"));
  EXPECT_TRUE(may_dial(AddressKind::loopback, "127.0.0.1"));
  EXPECT_TRUE(may_dial(AddressKind::private_use, "10.1.2.3"));
  EXPECT_TRUE(may_dial(AddressKind::private_use, "fd00::7"));
  EXPECT_FALSE(may_dial(AddressKind::link_local, "10.1.2.3"));
  EXPECT_FALSE(may_dial(AddressKind::multicast, "224.0.0.1"));
  EXPECT_FALSE(may_dial(AddressKind::loopback, "localhost."));
}

TEST(Origin, Accepts) {
  auto name = parse_origin("https://api.anthropic.com");
  ASSERT_TRUE(name.has_value());
  EXPECT_EQ(name->host, "api.anthropic.com");
  EXPECT_EQ(name->port, 443);
  EXPECT_EQ(name->authority(), "api.anthropic.com");
  auto port = parse_origin("https://127.0.0.1:8443");
  ASSERT_TRUE(port.has_value());
  EXPECT_TRUE(port->is_literal);
  EXPECT_EQ(port->authority(), "127.0.0.1:8443");
  auto six = parse_origin("https://[::1]:8443");
  ASSERT_TRUE(six.has_value());
  EXPECT_EQ(six->host, "::1");
  EXPECT_EQ(six->authority(), "[::1]:8443");
  EXPECT_TRUE(parse_origin("https://localhost").has_value());
  auto below = parse_origin("https://gateway.test:8443/models/eu-1");
  ASSERT_TRUE(below.has_value());
  EXPECT_EQ(below->authority(), "gateway.test:8443");
  EXPECT_EQ(below->prefix, "/models/eu-1");
}

TEST(Origin, RefusesEveryOtherSpelling) {
  for (const char* url : {"",
                          "api.vendor.test",
                          "http://api.vendor.test",
                          "HTTPS://api.vendor.test",
                          "https://",
                          "https://a.test/",
                          "https://a.test//v1",
                          "https://a.test/v1/",
                          "https://a.test/../v1",
                          "https://a.test/./v1",
                          "https://a.test/v%31",
                          "https://a.test/v1?x",
                          "https://a.test/a b",
                          "https:///v1",
                          "https://a.test?x",
                          "https://user@a.test",
                          "https://user:pw@a.test",
                          "https://A.test",
                          "https://a.test.",
                          "https://a..test",
                          "https://.a.test",
                          "https://-a.test",
                          "https://a_b.test",
                          "https://a.test:",
                          "https://a.test:0",
                          "https://a.test:0443",
                          "https://a.test:65536",
                          "https://a.test:44x",
                          "https://a.test:443:443",
                          "https://2130706433",
                          "https://0x7f000001",
                          "https://127.1",
                          "https://0177.0.0.1",
                          "https://127.0.0.1.",
                          "https://::1",
                          "https://[::1",
                          "https://[127.0.0.1]",
                          "https://[fe80::1%25eth0]",
                          "https://[::1]x",
                          "https://b\xc3\xbc"
                          "cher.test",
                          "https://a.test\r\nx: y",
                          "https://a b.test"}) {
    EXPECT_FALSE(parse_origin(url).has_value()) << url;
  }
}

TEST(AddressRangeTest, ParsesAndHolds) {
  auto inside = [](const char* range, const char* address) {
    auto parsed = parse_range(range);
    auto bytes = parse_address_literal(address);
    return parsed.has_value() && bytes.has_value() && in_range(*bytes, *parsed);
  };
  EXPECT_TRUE(inside("10.0.0.0/8", "10.255.0.1"));
  EXPECT_FALSE(inside("10.0.0.0/8", "11.0.0.1"));
  EXPECT_TRUE(inside("10.1.2.3", "10.1.2.3"));
  EXPECT_FALSE(inside("10.1.2.3", "10.1.2.4"));
  EXPECT_TRUE(inside("0.0.0.0/0", "8.8.8.8"));
  EXPECT_FALSE(inside("0.0.0.0/0", "::1"));  // another family, and no spelling of it
  EXPECT_TRUE(inside("fd00::/8", "fd12::1"));
  EXPECT_FALSE(inside("fd00::/8", "fe80::1"));
  for (const char* bad : {"10.0.0.0/33", "10.0.0.1/8", "10.0.0.0/", "10.0.0.0/08", "10.0.0.0/-1", "10/8",
                          "a/8", "fd00::/129", "10.0.0.0/8 ", ""}) {
    EXPECT_FALSE(parse_range(bad).has_value()) << bad;
  }
}

TEST(AddressRuleTest, EveryKindOfHostHasItsOwn) {
  using Kind = AddressRule::Kind;
  auto allowed = [](const AddressRule& rule, const char* address, const char* host) {
    return address_allowed(rule, *parse_address_literal(address), host);
  };
  EXPECT_TRUE(allowed({Kind::origin, {}}, "8.8.8.8", "a.test"));
  EXPECT_FALSE(allowed({Kind::origin, {}}, "10.0.0.1", "a.test"));
  EXPECT_TRUE(allowed({Kind::proxy, {}}, "10.0.0.1", "proxy.corp"));
  EXPECT_FALSE(allowed({Kind::proxy, {}}, "169.254.169.254", "proxy.corp"));
  EXPECT_FALSE(allowed({Kind::proxy, {}}, "127.0.0.1", "proxy.corp"));
  EXPECT_TRUE(allowed({Kind::ranges, {}}, "8.8.8.8", "a.test"));
  EXPECT_FALSE(allowed({Kind::ranges, {}}, "127.0.0.1", "localhost"));
  const AddressRule ten{Kind::ranges, {*parse_range("10.0.0.0/8")}};
  EXPECT_TRUE(allowed(ten, "10.0.0.1", "a.test"));
  EXPECT_FALSE(allowed(ten, "8.8.8.8", "a.test"));
  EXPECT_FALSE(allowed(ten, "::ffff:10.0.0.1", "a.test"));
}

TEST(ProxyTest, HasOneSpelling) {
  EXPECT_EQ(parse_proxy("http://proxy.corp:3128")->port, 3128);
  for (const char* bad : {"http://proxy.corp", "https://proxy.corp:1", "http://u:p@proxy.corp:1",
                          "http://proxy.corp:1/", "http://Proxy:1", "http://127.1:1", "proxy:1", ""}) {
    EXPECT_FALSE(parse_proxy(bad).has_value()) << bad;
  }
}

}  // namespace
}  // namespace cofferdam::egress
