// What goes between broker and gateway, and what the vendor is shown.
#include "egress/credential.h"

#include <gtest/gtest.h>

namespace cofferdam::egress {
namespace {

VendorCredential credential(CredentialKind kind, const char* token) {
  VendorCredential out;
  out.kind = kind;
  out.token = Secret(token);
  out.seq = 1;
  if (kind == CredentialKind::chatgpt) out.account_id = "acc-1";
  return out;
}

TEST(Credential, EveryKindHasItsHeaders) {
  const std::pair<CredentialKind, const char*> expected[] = {
      {CredentialKind::anthropic_api_key, "x-api-key: t\r\n"},
      {CredentialKind::anthropic_oauth, "authorization: Bearer t\r\n"},
      {CredentialKind::openai_api_key, "authorization: Bearer t\r\n"},
      {CredentialKind::chatgpt, "authorization: Bearer t\r\nchatgpt-account-id: acc-1\r\n"},
      {CredentialKind::bearer, "authorization: Bearer t\r\n"}};
  for (const auto& [kind, lines] : expected) {
    std::string head;
    append_credential(credential(kind, "t"), &head);
    EXPECT_EQ(head, lines) << credential_kind_name(kind);
    EXPECT_LE(head.size(), header_bytes(credential(kind, "t")));
    EXPECT_EQ(credential_kind_from_name(credential_kind_name(kind)), kind);
  }
}

TEST(Grant, ComesBackAsItWent) {
  VendorCredential sent = credential(CredentialKind::chatgpt, "to\"ken");
  sent.expires_at_ms = 1'800'000'000'000;
  sent.seq = 7;
  auto grant = decode_grant(encode_grant(sent).view());
  ASSERT_TRUE(grant) << grant.error().line();
  ASSERT_TRUE(grant->credential.has_value());
  EXPECT_EQ(grant->credential->token.view(), "to\"ken");
  EXPECT_EQ(grant->credential->account_id, "acc-1");
  EXPECT_EQ(grant->credential->expires_at_ms, 1'800'000'000'000);
  EXPECT_EQ(grant->credential->seq, 7U);
  auto refusal = decode_grant(encode_refusal("login expired"));
  ASSERT_TRUE(refusal);
  EXPECT_EQ(refusal->refusal, "login expired");
  auto request = decode_renewal_request(encode_renewal_request({3, true}));
  ASSERT_TRUE(request);
  EXPECT_EQ(request->seq, 3U);
  EXPECT_TRUE(request->rejected);
}

// A credential becomes a header value. The reason never quotes it.
TEST(Grant, RefusesWhatCannotStandInAHeader) {
  for (const char* token : {"", "sk-1\n", "sk-1\r\nx: y", "sk 1", "sk-\xc3\xa9"}) {
    auto grant = decode_grant(encode_grant(credential(CredentialKind::anthropic_api_key, token)).view());
    ASSERT_FALSE(grant) << token;
    EXPECT_EQ(grant.error().line().find("sk"), std::string::npos);
  }
  VendorCredential nameless = credential(CredentialKind::chatgpt, "t");
  nameless.account_id.clear();
  EXPECT_FALSE(check_credential(nameless));
  for (const char* bytes : {"", "{}", "{}\nx", "{\"refusal\":1}\n", "x\ny"})
    EXPECT_FALSE(decode_grant(bytes));
  for (const char* bytes : {"", "{}", R"({"renew":0,"rejected":true})"})
    EXPECT_FALSE(decode_renewal_request(bytes));
}

}  // namespace
}  // namespace cofferdam::egress
