// Header fields in both directions (attacks.md E9, E10).
#include "egress/headers.h"

#include <gtest/gtest.h>

namespace cofferdam::egress {
namespace {

RequestHead head_with(const std::vector<HeaderField>& fields) {
  RequestHead head;
  head.method = "POST";
  head.fields = fields;
  return head;
}

GatewayPolicy policy(contract::Vendor vendor, CredentialKind kind) {
  GatewayPolicy out;
  out.vendor = vendor;
  out.credential_kind = kind;
  return out;
}

const GatewayPolicy kKey = policy(contract::Vendor::anthropic, CredentialKind::anthropic_api_key);
const GatewayPolicy kOauth = policy(contract::Vendor::anthropic, CredentialKind::anthropic_oauth);
const GatewayPolicy kCodex = policy(contract::Vendor::openai, CredentialKind::openai_api_key);

TEST(VendorFields, OnlyListedOnesPass) {
  auto fields = vendor_fields(kKey, head_with({{"accept", "*/*"},
                                               {"user-agent", "box"},
                                               {"anthropic-version", "2023-06-01"},
                                               {"anthropic-beta", "claude-code-20250219, effort-2025-11-24"},
                                               {"anthropic-beta", "effort-2025-11-24"},
                                               {"anthropic-dangerous-direct-browser-access", "true"},
                                               {"x-stainless-lang", "js"},
                                               {"x-app", "cli"},
                                               {"x-api-key", "k"},
                                               {"authorization", "Bearer k"},
                                               {"cookie", "c"},
                                               {"proxy-authorization", "p"},
                                               {"host", "evil.test"},
                                               {"content-type", "multipart/form-data"},
                                               {"accept-encoding", "gzip"},
                                               {"x-forwarded-for", "1.2.3.4"},
                                               {"anthropic-organization", "o"},
                                               {"x-stainless", "x"},
                                               {"session-id", "of the other vendor"},
                                               {"te", "trailers"}}));
  ASSERT_EQ(fields.size(), 7U);
  EXPECT_EQ(fields[5].name, "x-app");
  EXPECT_EQ(fields[6].name, "anthropic-beta");
  EXPECT_EQ(fields[6].value, "claude-code-20250219,effort-2025-11-24");
}

TEST(VendorFields, OfCodex) {
  auto fields = vendor_fields(kCodex, head_with({{"originator", "codex_exec"},
                                                 {"session-id", "s"},
                                                 {"authorization", "Bearer k"},
                                                 {"chatgpt-account-id", "a"},
                                                 {"openai-organization", "o"},
                                                 {"openai-beta", "assistants=v2"},
                                                 {"x-app", "of the other vendor"},
                                                 {"x-codex-beta-features", "remote_compaction_v2"}}));
  ASSERT_EQ(fields.size(), 3U);
  EXPECT_EQ(fields[0].name, "originator");
  EXPECT_EQ(fields[2].name, "x-codex-beta-features");
}

// The flag goes with the credential: it is ensured for a login and taken away from a key.
TEST(VendorFields, TheOauthFlagFollowsTheCredential) {
  auto added = vendor_fields(kOauth, head_with({}));
  ASSERT_EQ(added.size(), 1U);
  EXPECT_EQ(added[0].value, "oauth-2025-04-20");
  auto kept = vendor_fields(kOauth, head_with({{"anthropic-beta", "oauth-2025-04-20,effort-2025-11-24"}}));
  EXPECT_EQ(kept.back().value, "oauth-2025-04-20,effort-2025-11-24");
  EXPECT_TRUE(vendor_fields(kKey, head_with({{"anthropic-beta", "oauth-2025-04-20"}})).empty());
}

TEST(DecideFields, FlagsAndVersionAreTheOnesOfThePinnedClis) {
  EXPECT_FALSE(decide_fields(kKey, head_with({{"anthropic-version", "2023-06-01"},
                                              {"anthropic-beta", "effort-2025-11-24, , "},
                                              {"x-codex-beta-features", "of no meaning here"}})));
  auto version = decide_fields(kKey, head_with({{"anthropic-version", "2099-01-01"}}));
  ASSERT_TRUE(version.has_value());
  EXPECT_EQ(version->rule, "header");
  EXPECT_EQ(version->where, "anthropic-version");
  auto files = decide_fields(
      kKey, head_with({{"anthropic-beta", "effort-2025-11-24"}, {"anthropic-beta", "files-api-2025-04-14"}}));
  ASSERT_TRUE(files.has_value());
  EXPECT_EQ(files->action, Action::deny);
  EXPECT_EQ(files->rule, "flag");
  EXPECT_EQ(files->where, "anthropic-beta: files-api-2025-04-14");
  EXPECT_TRUE(decide_fields(kCodex, head_with({{"x-codex-beta-features", "more"}})).has_value());
  auto fetch = head_with({{"anthropic-beta", "web-fetch-2025-09-10"}});
  EXPECT_TRUE(decide_fields(kKey, fetch).has_value());
  auto context = head_with({{"anthropic-beta", "context-1m-2025-08-07"}});
  EXPECT_TRUE(decide_fields(kKey, context).has_value());
  GatewayPolicy long_context = kKey;
  long_context.models = {"claude-x[1m]"};
  EXPECT_FALSE(decide_fields(long_context, context).has_value());
  GatewayPolicy opted_in = kKey;
  opted_in.vendor_tools = {"web_fetch_20250910"};
  EXPECT_FALSE(decide_fields(opted_in, fetch).has_value());
}

TEST(VendorHead, HasTheCredentialOnceAndFraming) {
  Origin origin;
  origin.host = "api.vendor.test";
  VendorCredential credential;
  credential.token = Secret("sk-1");
  Secret head = vendor_request_head(origin, "/v1/messages?beta=true", {{"accept", "*/*"}}, credential, 12);
  EXPECT_EQ(head.view(),
            "POST /v1/messages?beta=true HTTP/1.1\r\nhost: api.vendor.test\r\naccept: */*\r\n"
            "content-type: application/json\r\naccept-encoding: identity\r\n"
            "content-length: 12\r\nx-api-key: sk-1\r\n\r\n");
  origin.prefix = "/models/eu";
  EXPECT_EQ(vendor_request_head(origin, "/v1/responses", {}, credential, 0)
                .view()
                .find("POST /models/eu/v1/responses HTTP/1.1\r\nhost: api.vendor.test\r\n"),
            0U);
}

TEST(ResponseFields, OnlyListedOnesAreShown) {
  for (const char* name :
       {"content-type", "retry-after", "request-id", "anthropic-ratelimit-requests-remaining"}) {
    EXPECT_TRUE(response_field_allowed(name)) << name;
  }
  for (const char* name :
       {"set-cookie", "location", "connection", "transfer-encoding", "content-length", "server",
        "anthropic-organization-id", "alt-svc", "trailer", "upgrade", "content-encoding"}) {
    EXPECT_FALSE(response_field_allowed(name)) << name;
  }
  EXPECT_TRUE(is_plain_value("text/event-stream; charset=utf-8"));
  EXPECT_FALSE(is_plain_value("a\r\nx: y"));
  EXPECT_FALSE(is_plain_value("\xc3\xa9"));
  EXPECT_FALSE(is_plain_value(std::string(5000, 'a')));
}

TEST(Secret, MovesAndWipes) {
  Secret first("abc");
  Secret second(std::move(first));
  EXPECT_TRUE(first.empty());  // NOLINT(bugprone-use-after-move): moved-from is empty by contract
  EXPECT_EQ(second.view(), "abc");
  second.wipe();
  EXPECT_TRUE(second.empty());
}

}  // namespace
}  // namespace cofferdam::egress
