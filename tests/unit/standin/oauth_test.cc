// The token endpoint: a refresh token works once, and what it gave works until it expires.
#include "oauth.h"

#include <gtest/gtest.h>

#include "exchange.h"
#include "openai.h"

namespace cofferdam::standin {
namespace {

OAuthScript login(std::chrono::seconds lifetime = std::chrono::seconds(3600)) {
  OAuthScript script;
  script.refresh_token = "first";
  script.access_token = "old";
  script.expires_in = lifetime;
  return script;
}

Kept refresh(TokenBook& book, const std::string& path, const std::string& body) {
  KeptExchange exchange;
  EXPECT_TRUE(make_oauth_api(&book)->handle(make_request("POST", path, "", body), exchange));
  return exchange;
}

std::string json_body(const std::string& token) {
  return R"({"client_id":"c","grant_type":"refresh_token","refresh_token":")" + token + "\"}";
}

TEST(TokenEndpoint, ChatGptLoginsGetJwts) {
  TokenBook book(login());
  Kept exchange = refresh(book, "/oauth/token", json_body("first"));
  ASSERT_EQ(exchange.status, 200U);
  const Json body = exchange.json();
  EXPECT_EQ(split(body["access_token"].get<std::string>(), '.').size(), 3U);
  EXPECT_EQ(split(body["id_token"].get<std::string>(), '.').size(), 3U);
  EXPECT_EQ(body["expires_in"], 3600);
  EXPECT_NE(body["refresh_token"], "first");
  EXPECT_TRUE(book.accepts(body["access_token"].get<std::string>()));
  EXPECT_TRUE(book.accepts("old"));
  EXPECT_FALSE(book.accepts("first"));
}

TEST(TokenEndpoint, ClaudeLoginsGetOpaqueTokens) {
  TokenBook book(login());
  Kept exchange =
      refresh(book, "/v1/oauth/token", "grant_type=refresh_token&refresh_token=first&client_id=c");
  ASSERT_EQ(exchange.status, 200U);
  EXPECT_TRUE(starts_with(exchange.json()["access_token"].get<std::string>(), "sk-ant-oat01-"));
  EXPECT_FALSE(exchange.json().contains("id_token"));
}

TEST(TokenEndpoint, ARefreshTokenWorksOnce) {
  TokenBook book(login());
  const std::string second = refresh(book, "/oauth/token", json_body("first")).json()["refresh_token"];
  Kept again = refresh(book, "/oauth/token", json_body("first"));
  EXPECT_EQ(again.status, 400U);
  EXPECT_EQ(again.json()["error"], "invalid_grant");
  EXPECT_EQ(refresh(book, "/oauth/token", json_body("guessed")).status, 400U);
  Kept next = refresh(book, "/oauth/token", json_body(second));
  EXPECT_EQ(next.status, 200U);
  EXPECT_EQ(next.notes["oauth"], (Json{{"granted", 2}, {"reused", 1}, {"unknown", 1}}));
}

TEST(TokenEndpoint, AccessTokensExpire) {
  TokenBook book(login(std::chrono::seconds(0)));
  const std::string access = refresh(book, "/oauth/token", json_body("first")).json()["access_token"];
  EXPECT_FALSE(book.accepts(access));
  EXPECT_FALSE(book.accepts("old"));
}

TEST(TokenEndpoint, NothingElseIsAnswered) {
  TokenBook book(login());
  EXPECT_EQ(refresh(book, "/oauth/token", R"({"grant_type":"password"})").status, 400U);
  KeptExchange exchange;
  EXPECT_FALSE(make_oauth_api(&book)->handle(make_request("POST", "/oauth/authorize", ""), exchange));
}

TEST(TokenEndpoint, ItsTokensOpenTheApi) {
  TokenBook book(login());
  auto api = make_openai_api({}, "key", &book);
  for (const auto& [bearer, status] :
       std::map<std::string, unsigned>{{"key", 200}, {"old", 200}, {"other", 401}}) {
    KeptExchange exchange;
    api->handle(make_request("GET", "/v1/models", bearer), exchange);
    EXPECT_EQ(exchange.status, status) << bearer;
  }
}

}  // namespace
}  // namespace cofferdam::standin
