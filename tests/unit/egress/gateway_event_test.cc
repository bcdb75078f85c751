// The two private formats between supervisor and gateway.
#include <gtest/gtest.h>

#include "egress/gateway.h"
#include "egress/gateway_setup.h"

namespace cofferdam::egress {
namespace {

TEST(GatewayEvent, ComesBackAsItWent) {
  GatewayEvent event;
  event.method = "POST";
  event.path = "/v1/messages?beta=true";
  event.rule = "messages";
  event.denied = true;
  event.limit = true;
  event.status = 403;
  event.request_bytes = 1;
  event.response_bytes = 2;
  event.took_ms = 3;
  event.input_tokens = 4;
  event.output_tokens = 5;
  event.cache_read_tokens = 6;
  event.cache_write_tokens = 7;
  event.cost_micros = 8;
  event.retry_after = "Wed, 30 Nov 2026 12:00:00 GMT";
  event.failure = "vendor-reset";
  event.tunnelled = true;
  event.host = "registry.test";
  event.port = 8443;
  std::string line = encode_gateway_event(event);
  EXPECT_EQ(line.find('\n'), std::string::npos);
  auto back = decode_gateway_event(line);
  ASSERT_TRUE(back.has_value()) << back.error().line();
  EXPECT_EQ(encode_gateway_event(*back), line);
  EXPECT_EQ(back->output_tokens, 5U);
  EXPECT_TRUE(back->limit);
  EXPECT_EQ(back->cost_micros, 8U);
  EXPECT_EQ(back->retry_after, "Wed, 30 Nov 2026 12:00:00 GMT");
  EXPECT_EQ(back->failure, "vendor-reset");
  EXPECT_TRUE(back->tunnelled);
  EXPECT_EQ(back->host, "registry.test");
  EXPECT_EQ(back->port, 8443);
}

TEST(GatewayEvent, SurvivesWhatABoxWrites) {
  GatewayEvent event;
  event.method = "G\xff\n";
  event.path = std::string(4000, '\xfe');
  event.rule = "http: target";
  auto back = decode_gateway_event(encode_gateway_event(event));
  ASSERT_TRUE(back.has_value()) << back.error().line();
  EXPECT_LE(back->path.size(), 512U);
}

TEST(GatewayEvent, IsDecodedStrictly) {
  GatewayEvent event;
  event.rule = "route";
  std::string line = encode_gateway_event(event);
  EXPECT_FALSE(decode_gateway_event(line.substr(0, line.size() - 1) + R"(,"more":1})").has_value());
  EXPECT_FALSE(decode_gateway_event("{}").has_value());
  EXPECT_FALSE(decode_gateway_event("").has_value());
  EXPECT_FALSE(decode_gateway_event(line + line).has_value());
}

GatewayPolicy policy() {
  GatewayPolicy out;
  out.vendor = contract::Vendor::anthropic;
  out.upstream = "https://api.vendor.test:8443";
  out.models = {"m1", "m2"};
  out.vendor_tools = {"web_search_20250305"};
  out.max_requests = 5;
  out.max_tokens = 7;
  out.transport.head_ms = 8;
  out.transport.idle_ms = 9;
  out.transport.answer_bytes = 10;
  return out;
}

TEST(GatewaySetup, ComesBackAsItWent) {
  GatewayPolicy sent = policy();
  sent.total_tokens = 8;
  sent.max_cost_micros = 9;
  sent.max_parallel = 10;
  sent.max_connections = 1000;
  sent.deadline_ms = 77;
  sent.price = ModelPrice{1, 2, 3, 4, 5};
  auto bytes = encode_setup(sent);
  ASSERT_TRUE(bytes.has_value());
  auto setup = decode_setup(*bytes);
  ASSERT_TRUE(setup.has_value()) << setup.error().line();
  EXPECT_EQ(setup->origin.host, "api.vendor.test");
  EXPECT_EQ(setup->origin.port, 8443);
  EXPECT_EQ(setup->policy.models, policy().models);
  EXPECT_EQ(setup->policy.vendor_tools, policy().vendor_tools);
  EXPECT_EQ(setup->policy.max_requests, 5U);
  EXPECT_EQ(setup->policy.max_tokens, 7U);
  EXPECT_EQ(setup->policy.total_tokens, 8U);
  EXPECT_EQ(setup->policy.max_cost_micros, 9U);
  EXPECT_EQ(setup->policy.max_parallel, 10U);
  EXPECT_EQ(setup->policy.max_connections, 1000U);
  EXPECT_EQ(setup->policy.deadline_ms, 77U);
  EXPECT_EQ(setup->policy.price, sent.price);
  EXPECT_TRUE(setup->policy.transport == policy().transport);
}

// A policy without a ceiling would be one without a bound; a limit of cost without a price likewise.
TEST(GatewaySetup, RefusesWhatCannotWork) {
  GatewayPolicy no_ceiling = policy();
  no_ceiling.max_tokens = 0;
  auto bytes = encode_setup(no_ceiling);
  ASSERT_TRUE(bytes.has_value());
  EXPECT_FALSE(decode_setup(*bytes).has_value());
  GatewayPolicy wrong_kind = policy();
  wrong_kind.credential_kind = CredentialKind::chatgpt;
  bytes = encode_setup(wrong_kind);
  EXPECT_FALSE(decode_setup(*bytes).has_value());
  GatewayPolicy unknown_tool = policy();
  unknown_tool.vendor_tools = {"web_search"};  // the other vendor's name for it
  bytes = encode_setup(unknown_tool);
  auto refused = decode_setup(*bytes);
  ASSERT_FALSE(refused.has_value());
  EXPECT_NE(refused.error().line().find("web_search_20250305"), std::string::npos);
  GatewayPolicy no_price = policy();
  no_price.max_cost_micros = 1;
  auto unpriced = encode_setup(no_price);
  ASSERT_TRUE(unpriced.has_value());
  EXPECT_FALSE(decode_setup(*unpriced).has_value());
  GatewayPolicy huge = policy();
  huge.models = std::vector<std::string>(1000, std::string(200, 'm'));
  EXPECT_FALSE(encode_setup(huge).has_value());
  EXPECT_FALSE(decode_setup("{}").has_value());
}

}  // namespace
}  // namespace cofferdam::egress
