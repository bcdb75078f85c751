#include "contract/destination.h"

#include <gtest/gtest.h>

#include "base/text.h"

namespace cofferdam::contract {
namespace {

TEST(Destination, IsAHostAndAPort) {
  auto plain = parse_destination("registry.example");
  ASSERT_TRUE(plain) << plain.error().line();
  EXPECT_TRUE(*plain == Destination{"registry.example"});
  EXPECT_EQ(plain->port, 443);
  EXPECT_FALSE(plain->plain);
  auto with_port = parse_destination("Registry.Example:8443");
  ASSERT_TRUE(with_port) << with_port.error().line();
  EXPECT_EQ(with_port->host, "registry.example");
  EXPECT_EQ(with_port->port, 8443);
}

// An address in whichever spelling is nobody's name (attacks.md D10), and neither is half a URL.
TEST(Destination, NothingElseIsOne) {
  for (const char* text : {"",
                           ":443",
                           "192.0.2.1",
                           "192.0.2.1:443",
                           "2130706433",
                           "0x7f000001",
                           "127.1",
                           "0177.0.0.1",
                           "::1",
                           "[::1]:443",
                           "[::ffff:127.0.0.1]",
                           "fe80::1%lo",
                           "*.example",
                           "registry.example.",
                           "a..b",
                           "-a.example",
                           "me@registry.example",
                           "https://registry.example",
                           "registry.example/path",
                           "registry.example:",
                           "registry.example:0",
                           "registry.example:65536",
                           "registry.example:0443",
                           "registry.example:443:443",
                           "registry.example:https",
                           "regi stry",
                           "reg\u0131stry.example"}) {
    auto parsed = parse_destination(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_EQ(parsed.error().code, Code::usage) << text;
  }
}

TEST(Destination, ProblemsNameTheKey) {
  const Destination good{"registry.example", 443, false, {"10.0.0.0/8", "fd00::/8", "192.0.2.7"}};
  EXPECT_FALSE(find_problem(good).has_value());
  const auto key = [](const Destination& destination) {
    auto found = find_problem(destination);
    return found.has_value() ? found->key : "none";
  };
  Destination bad = good;
  bad.host = "registry.example.";
  EXPECT_EQ(key(bad), "host");
  bad = good;
  bad.port = 0;
  EXPECT_EQ(key(bad), "port");
  for (const char* range :
       {"", "10.0.0.0/33", "10.0.0.1/8", "fd00::/129", "localhost", "10/8", "10.0.0.0/08"}) {
    bad = good;
    bad.addresses = {range};
    EXPECT_EQ(key(bad), "addresses") << range;
  }
  bad = good;
  bad.addresses.assign(kMaxDestinationRanges + 1, "10.0.0.0/8");
  EXPECT_EQ(key(bad), "addresses");
  bad = good;
  bad.max_sent = 0;
  EXPECT_EQ(key(bad), "max_sent");
  bad = good;
  bad.max_received = kMaxDestinationBytes + 1;
  EXPECT_EQ(key(bad), "max_received");
}

}  // namespace
}  // namespace cofferdam::contract
