// Routes and budget are pure decisions (attacks.md D3, D5, D25).
#include "egress/policy.h"

#include <gtest/gtest.h>

#include "contract/json.h"

namespace cofferdam::egress {
namespace {

GatewayPolicy anthropic() {
  GatewayPolicy policy;
  policy.vendor = contract::Vendor::anthropic;
  policy.max_requests = 2;
  return policy;
}

Decision decide(const GatewayPolicy& policy, std::string_view method, std::string_view path) {
  return decide_route(policy, {method, path, {}, false});
}

TEST(Route, AllowsExactlyTheMessages) {
  GatewayPolicy policy = anthropic();
  EXPECT_EQ(decide(policy, "POST", "/v1/messages").action, Action::relay);
  EXPECT_EQ(decide_route(policy, {"POST", "/v1/messages", "beta=true", true}).action, Action::relay);
  EXPECT_EQ(decide(policy, "HEAD", "/").action, Action::answer_ok);
}

TEST(Route, DeniesEverythingElseWithItsReason) {
  GatewayPolicy policy = anthropic();
  struct Case {
    const char *method, *path, *query, *rule;
    bool has_query;
  };
  const Case cases[] = {
      {"POST", "/v1/messages", "beta=false", "query", true},
      {"POST", "/v1/messages", "", "query", true},
      {"POST", "/v1/messages", "beta=true&x=1", "query", true},
      {"POST", "/v1/messages", "BETA=true", "query", true},
      {"GET", "/v1/messages", "", "method", false},
      {"post", "/v1/messages", "", "method", false},
      {"DELETE", "/v1/messages", "", "method", false},
      {"GET", "/", "", "method", false},
      {"HEAD", "/", "x", "query", true},
      {"POST", "/v1/messages/", "", "route", false},
      {"POST", "/v1/messages/count_tokens", "", "route", false},
      {"POST", "/v1/messages/batches", "", "route", false},
      {"POST", "/v1/files", "", "route", false},
      {"POST", "/v1/%6dessages", "", "route", false},
      {"POST", "/v1//messages", "", "route", false},
      {"POST", "/v1/x/../messages", "", "route", false},
      {"POST", "/V1/messages", "", "route", false},
      {"GET", "/v1/organizations/me", "", "route", false},
      {"POST", "", "", "route", false},
  };
  for (const Case& c : cases) {
    Decision decision = decide_route(policy, {c.method, c.path, c.query, c.has_query});
    EXPECT_EQ(decision.action, Action::deny) << c.method << c.path << c.query;
    EXPECT_EQ(decision.rule, c.rule) << c.method << c.path << c.query;
    EXPECT_EQ(decision.status, 403);
    EXPECT_FALSE(decision.limit);
  }
}

GatewayPolicy openai(CredentialKind kind) {
  GatewayPolicy policy = anthropic();
  policy.vendor = contract::Vendor::openai;
  policy.credential_kind = kind;
  return policy;
}

TEST(Route, TargetFollowsTheCredential) {
  EXPECT_EQ(decide_route(anthropic(), {"POST", "/v1/messages", "beta=true", true}).target,
            "/v1/messages?beta=true");
  for (auto kind : {CredentialKind::openai_api_key, CredentialKind::bearer}) {
    Decision decision = decide(openai(kind), "POST", "/v1/responses");
    EXPECT_EQ(decision.action, Action::relay);
    EXPECT_EQ(decision.rule, "responses");
    EXPECT_EQ(decision.target, "/v1/responses");
  }
  EXPECT_EQ(decide(openai(CredentialKind::chatgpt), "POST", "/v1/responses").target,
            "/backend-api/codex/responses");
}

// One vendor's routes are nothing to the other; the account APIs are nobody's.
TEST(Route, OfOpenAiIsOneOnly) {
  for (auto kind : {CredentialKind::openai_api_key, CredentialKind::chatgpt, CredentialKind::bearer}) {
    for (auto [method, path] :
         {std::pair{"POST", "/v1/messages"}, std::pair{"HEAD", "/"}, std::pair{"GET", "/v1/models"},
          std::pair{"GET", "/v1/responses"}, std::pair{"DELETE", "/v1/responses"},
          std::pair{"GET", "/v1/responses/resp_1"}, std::pair{"POST", "/v1/responses/compact"},
          std::pair{"POST", "/v1/chat/completions"}, std::pair{"POST", "/v1/files"},
          std::pair{"POST", "/backend-api/codex/responses"}, std::pair{"POST", "/oauth/token"}}) {
      EXPECT_EQ(decide(openai(kind), method, path).action, Action::deny) << method << path;
      EXPECT_EQ(decide(openai(kind), method, path).status, 403) << method << path;
    }
    EXPECT_EQ(decide_route(openai(kind), {"POST", "/v1/responses", "a=b", true}).rule, "query");
  }
  EXPECT_EQ(decide(openai(CredentialKind::anthropic_api_key), "POST", "/v1/responses").rule, "route");
  EXPECT_EQ(decide(anthropic(), "POST", "/v1/responses").rule, "route");
}

// Codex tries a WebSocket where it may; after a 426 it posts.
TEST(Route, AWebSocketIsRefusedSoThatTheClientFallsBack) {
  Decision socket =
      decide_route(openai(CredentialKind::openai_api_key), {"GET", "/v1/responses", {}, false, true});
  EXPECT_EQ(socket.action, Action::deny);
  EXPECT_EQ(socket.status, 426);
  EXPECT_EQ(socket.rule, "websocket");
  for (const Intent& intent :
       {Intent{"POST", "/v1/responses", {}, false, true}, Intent{"GET", "/v1/realtime", {}, false, true},
        Intent{"GET", "/v1/responses", "x", true, true}}) {
    Decision other = decide_route(openai(CredentialKind::openai_api_key), intent);
    EXPECT_EQ(other.action, Action::deny);
    EXPECT_EQ(other.status, 400);
    EXPECT_EQ(other.rule, "http: upgrade");
  }
  EXPECT_EQ(decide_route(anthropic(), {"HEAD", "/", {}, false, true}).rule, "http: upgrade");
}

TEST(Route, CredentialsBelongToTheirVendor) {
  using contract::Vendor;
  EXPECT_TRUE(is_kind_of(CredentialKind::anthropic_oauth, Vendor::anthropic));
  EXPECT_TRUE(is_kind_of(CredentialKind::bearer, Vendor::anthropic));
  EXPECT_TRUE(is_kind_of(CredentialKind::chatgpt, Vendor::openai));
  EXPECT_FALSE(is_kind_of(CredentialKind::openai_api_key, Vendor::anthropic));
  EXPECT_FALSE(is_kind_of(CredentialKind::anthropic_api_key, Vendor::openai));
  EXPECT_FALSE(is_kind_of(CredentialKind::bearer, Vendor::none));
}

TEST(Route, NoVendorMeansNothing) {
  GatewayPolicy policy = anthropic();
  policy.vendor = contract::Vendor::none;
  EXPECT_EQ(decide(policy, "POST", "/v1/messages").action, Action::deny);
  EXPECT_EQ(decide(policy, "HEAD", "/").action, Action::deny);
}

TEST(Budget, EndsWithALimit) {
  GatewayPolicy policy = anthropic();
  EXPECT_EQ(decide_budget(policy, 0).action, Action::relay);
  EXPECT_EQ(decide_budget(policy, 1).action, Action::relay);
  Decision over = decide_budget(policy, 2);
  EXPECT_EQ(over.action, Action::deny);
  EXPECT_EQ(over.rule, "requests");
  EXPECT_TRUE(over.limit);
  policy.max_requests = 0;  // nothing is not everything
  EXPECT_EQ(decide_budget(policy, 0).action, Action::deny);
}

TEST(Denial, IsReadableByMachinesAndPeople) {
  EXPECT_EQ(
      denial_body(deny("route")),
      R"({"cofferdam":{"denied":true,"retry":false,"rule":"route"},"error":{"message":)"
      R"("denied by Cofferdam policy: route; do not retry","type":"permission_error"},"type":"error"})");
  auto json = contract::parse_json(denial_body(deny("model", "$.model")), 4096);
  ASSERT_TRUE(json.has_value());
  EXPECT_EQ((*json)["cofferdam"]["path"], "$.model");
  EXPECT_EQ((*json)["error"]["message"], "denied by Cofferdam policy: model at $.model; do not retry");
  auto failure = contract::parse_json(vendor_failure_body("vendor-tls"), 4096);
  ASSERT_TRUE(failure.has_value());
  EXPECT_EQ((*failure)["cofferdam"]["rule"], "vendor-tls");
  EXPECT_EQ((*failure)["cofferdam"]["denied"], false);
}

}  // namespace
}  // namespace cofferdam::egress
