// The login files of the two CLIs and the answers of their token endpoints (agents.md 1.3 and 2.5).
#include "egress/login.h"

#include <gtest/gtest.h>

#include "contract/json.h"

namespace cofferdam::egress {
namespace {

using contract::Json;

constexpr const char* kClaude =
    R"({"claudeAiOauth":{"accessToken":"sk-ant-oat01-a","refreshToken":"sk-ant-ort01-r","expiresAt":1800000000000,)"
    R"("scopes":["user:inference"],"subscriptionType":"max"},"mcpOAuth":{"x":1}})";
// {"exp":1800000000}
constexpr const char* kJwt = "eyJhbGciOiJub25lIn0.eyJleHAiOjE4MDAwMDAwMDB9.sig";

TEST(Login, ReadsClaudes) {
  auto login = parse_login(LoginShape::claude, kClaude);
  ASSERT_TRUE(login) << login.error().line();
  EXPECT_EQ(login->kind, CredentialKind::anthropic_oauth);
  EXPECT_EQ(login->access.view(), "sk-ant-oat01-a");
  EXPECT_EQ(login->refresh.view(), "sk-ant-ort01-r");
  EXPECT_EQ(login->expires_at_ms, 1'800'000'000'000);
}

TEST(Login, ReadsCodexsOfEitherKind) {
  auto chatgpt =
      parse_login(LoginShape::codex, std::string(R"({"auth_mode":"chatgpt","OPENAI_API_KEY":null,)") +
                                         R"("tokens":{"id_token":"i","access_token":")" + kJwt +
                                         R"(","refresh_token":"r","account_id":"acc"}})");
  ASSERT_TRUE(chatgpt) << chatgpt.error().line();
  EXPECT_EQ(chatgpt->kind, CredentialKind::chatgpt);
  EXPECT_EQ(chatgpt->account_id, "acc");
  EXPECT_EQ(chatgpt->expires_at_ms, 1'800'000'000'000);
  auto key = parse_login(LoginShape::codex, R"({"auth_mode":"apikey","OPENAI_API_KEY":"sk-1"})");
  ASSERT_TRUE(key);
  EXPECT_EQ(key->kind, CredentialKind::openai_api_key);
  EXPECT_TRUE(key->refresh.empty());
}

TEST(Login, WhatIsNoneIsSaidWithoutItsContent) {
  for (const char* file : {"", "secret", "[]", "{}", R"({"claudeAiOauth":{"accessToken":""}})",
                           R"({"claudeAiOauth":{"accessToken":["secret"]}})", R"({"claudeAiOauth":"secret"})",
                           R"({"claudeAiOauth":{"accessToken":"secret)"}) {
    auto login = parse_login(LoginShape::claude, file);
    ASSERT_FALSE(login) << file;
    EXPECT_EQ(login.error().code, Code::denied);
    EXPECT_EQ(login.error().line().find("secret"), std::string::npos);
  }
  EXPECT_FALSE(parse_login(LoginShape::codex, R"({"tokens":null,"OPENAI_API_KEY":null})"));
}

TEST(Login, KeysAreKnownByTheirLook) {
  EXPECT_EQ(kind_of_key(LoginShape::claude, false, "sk-ant-api03-x"), CredentialKind::anthropic_api_key);
  EXPECT_EQ(kind_of_key(LoginShape::claude, false, "sk-ant-oat01-x"), CredentialKind::anthropic_oauth);
  EXPECT_EQ(kind_of_key(LoginShape::codex, false, "sk-x"), CredentialKind::openai_api_key);
  EXPECT_EQ(kind_of_key(LoginShape::claude, true, "sk-ant-oat01-x"), CredentialKind::bearer);
}

TEST(Login, RenewalKeepsWhatItDoesNotKnow) {
  auto renewal = parse_renewal(LoginShape::claude,
                               R"({"access_token":"a2","refresh_token":"r2","expires_in":3600,"scope":"x"})",
                               Timestamp{1000});
  ASSERT_TRUE(renewal);
  EXPECT_EQ(renewal->expires_at_ms, 3'601'000);
  auto file = renewed_file(LoginShape::claude, kClaude, *renewal, Timestamp{1000});
  ASSERT_TRUE(file);
  auto json = contract::parse_json(file->view(), kMaxLoginBytes);
  ASSERT_TRUE(json);
  EXPECT_EQ((*json)["claudeAiOauth"],
            Json::parse(R"({"accessToken":"a2","refreshToken":"r2","expiresAt":3601000,)"
                        R"("scopes":["user:inference"],"subscriptionType":"max"})"));
  EXPECT_EQ((*json)["mcpOAuth"], Json::parse(R"({"x":1})"));
}

TEST(Login, RenewalOfCodexKeepsTheOldRefreshTokenWhenThereIsNoNewOne) {
  auto renewal =
      parse_renewal(LoginShape::codex, std::string(R"({"access_token":")") + kJwt + R"("})", Timestamp{0});
  ASSERT_TRUE(renewal);
  EXPECT_EQ(renewal->expires_at_ms, 1'800'000'000'000);
  auto file = renewed_file(LoginShape::codex, R"({"tokens":{"access_token":"a","refresh_token":"r"}})",
                           *renewal, Timestamp{0});
  ASSERT_TRUE(file);
  auto json = contract::parse_json(file->view(), kMaxLoginBytes);
  ASSERT_TRUE(json);
  EXPECT_EQ((*json)["tokens"]["refresh_token"], "r");
  EXPECT_EQ((*json)["last_refresh"], "1970-01-01T00:00:00.000Z");
}

TEST(Login, TheEndpointsWordIsShownOnlyWhenItIsOne) {
  EXPECT_EQ(renewal_error(R"({"error":"invalid_grant","error_description":"secret"})"), "invalid_grant");
  EXPECT_EQ(renewal_error(R"({"error":{"type":"invalid_request_error"}})"), "invalid_request_error");
  for (const char* answer : {"", "{}", R"({"error":"Bearer abc"})", R"({"error":5})"}) {
    EXPECT_EQ(renewal_error(answer), "") << answer;
  }
}

TEST(Login, JwtExpiryIsZeroForWhatIsNone) {
  EXPECT_EQ(jwt_expiry_ms(kJwt), 1'800'000'000'000);
  for (const char* token : {"", "a", "a.b", "a.b.c", "..", "a.e30.c", "a.!!!.c"})
    EXPECT_EQ(jwt_expiry_ms(token), 0);
}

}  // namespace
}  // namespace cofferdam::egress
