// Logins of the vendors' own CLIs: refreshed once by the broker, whoever asks, and shown to the vendor only
// (attacks.md E1, E2, G18).
#include "base/clock.h"
#include "base/text.h"
#include "contract/json.h"
#include "e2e/fixture.h"
#include "e2e/running.h"

namespace cofferdam::test {
namespace {

using contract::Json;

constexpr const char* kFirstRefresh = "SECRET-refresh-1";
constexpr const char* kScript = R"({"turns": [{"blocks": [{"text": "It says hello."}]}],
  "oauth": {"refresh_token": "SECRET-refresh-1", "account_id": "acc-SECRET-9", "delay_ms": 300}})";

class Logins : public EndToEnd {
 protected:
  std::string login() const { return world().home() + "/login.json"; }
  // An expired login of both shapes in turn, refreshed at the stand-in.
  void use_expired(const std::string& vendor) {
    const bool claude = vendor == "anthropic";
    use_standin(kScript, "nobody-has-this-key");
    const std::string place = place_of(standin().url()) + "credential = \"file\"\ncredential_file = \"" +
                              login() + "\"\ntoken_url = \"" + standin().url() +
                              (claude ? "/v1/oauth/token" : "/oauth/token") + "\"\n";
    world().write(world().config(), "[vendors." + vendor + "]\n" + place);
    const Json claude_file = {{"claudeAiOauth",
                               {{"accessToken", "sk-ant-oat01-SECRET-old"},
                                {"refreshToken", kFirstRefresh},
                                {"expiresAt", 1000},
                                {"scopes", {"user:inference"}}}}};
    const Json codex_file = {{"auth_mode", "chatgpt"},
                             {"OPENAI_API_KEY", nullptr},
                             {"tokens",
                              {{"id_token", "e30.e30.x"},
                               {"access_token", "e30.eyJleHAiOjEwMDB9.x"},  // {"exp":1000}
                               {"refresh_token", kFirstRefresh},
                               {"account_id", "acc-SECRET-9"}}}};
    world().write(login(), (claude ? claude_file : codex_file).dump(), 0600);
    mutable_world().extra_env.clear();
  }
  Json login_file() const {
    auto text = read_file(login(), 1U << 20U);
    auto json = contract::parse_json_lenient(text ? *text : "", 1U << 20U);
    return json ? *std::move(json) : Json();
  }
  std::vector<std::string> idle(const std::string& vendor, const std::string& id) const {
    return {"run",  "--json",  "--config", world().config(), "--agent", "command", "--egress",
            vendor, "--model", "m",        "--attempt-id",   id,        "--",      "/bin/sh",
            "-c",   "env"};
  }
  void expect_one_refresh(const std::string& vendor) {
    use_expired(vendor);
    Running first(world(), idle(vendor, "one"));
    Running second(world(), idle(vendor, "two"));
    for (RunOutcome outcome : {first.finish(), second.finish()}) {
      EXPECT_EQ(outcome.status.code, 0) << outcome.out << outcome.err;
      EXPECT_EQ((outcome.out + outcome.err).find("SECRET"), std::string::npos);
    }
    const auto refreshes = asked(vendor == "anthropic" ? "/v1/oauth/token" : "/oauth/token");
    ASSERT_EQ(refreshes.size(), 1U);
    EXPECT_EQ(refreshes[0]["oauth"]["granted"], 1);
    const Json tokens = login_file()[vendor == "anthropic" ? "claudeAiOauth" : "tokens"];
    EXPECT_NE(tokens.value(vendor == "anthropic" ? "refreshToken" : "refresh_token", ""), kFirstRefresh);
    for (const char* id : {"one", "two"}) {
      auto seen = read_file(world().state() + "/attempts/" + id + "/stdout", 1U << 20U);
      ASSERT_TRUE(seen.has_value());
      EXPECT_NE(seen->find("placeholder"), std::string::npos) << *seen;
      EXPECT_EQ(seen->find("SECRET"), std::string::npos) << *seen;
      EXPECT_EQ(seen->find("stand-in-refresh"), std::string::npos) << *seen;
    }
  }
};

TEST_P(Logins, TwoAttemptsRefreshAClaudeLoginOnce) {
  if (IsSkipped() || HasFatalFailure()) return;
  expect_one_refresh("anthropic");
}

TEST_P(Logins, TwoAttemptsRefreshAChatGptLoginOnce) {
  if (IsSkipped() || HasFatalFailure()) return;
  expect_one_refresh("openai");
}

// The refresh token was used by somebody else, whose new login never came into the file.
TEST_P(Logins, AUsedRefreshTokenIsAnExpiredLogin) {
  if (IsSkipped() || HasFatalFailure()) return;
  use_expired("anthropic");
  const auto before = read_file(login(), 1U << 20U);
  ASSERT_EQ(world().cofferdam(idle("anthropic", "first")).status.code, 0);  // the control
  world().write(login(), *before, 0600);
  RunOutcome outcome = world().cofferdam(idle("anthropic", "second"));
  EXPECT_EQ(outcome.status.code, 3) << outcome.out;
  EXPECT_NE(outcome.err.find("login expired"), std::string::npos) << outcome.err;
  EXPECT_EQ((outcome.out + outcome.err).find("SECRET"), std::string::npos);
  EXPECT_EQ(asked("/v1/messages").size(), 0U);
}

// The real CLI speaks to the API; the vendor's backend sees the login, its account and its path.
TEST_P(Logins, CodexWorksWithAChatGptLogin) {
  if (IsSkipped() || HasFatalFailure() || !need_agent("codex")) return;
  use_expired("openai");
  RunOutcome outcome = world().cofferdam({"ask", "--json", "--config", world().config(), "--agent", "codex",
                                          "--attempt-id", "asked", "What does it say?"});
  ASSERT_TRUE(outcome.result.has_value()) << outcome.out << outcome.err;
  EXPECT_EQ(outcome.status.code, 0) << outcome.out << outcome.err;
  EXPECT_EQ(outcome.result->answer, "It says hello.");
  const auto turns = asked("/backend-api/codex/responses");
  ASSERT_FALSE(turns.empty());
  EXPECT_TRUE(asked("/v1/responses").empty());
  for (const Json& turn : turns) {
    EXPECT_EQ(turn["headers"].value("chatgpt-account-id", ""), "acc-SECRET-9");
    EXPECT_EQ(turn["headers"].value("authorization", ""),
              "Bearer " + login_file()["tokens"]["access_token"].get<std::string>());
    EXPECT_FALSE(turn["body"].contains("max_output_tokens"));
  }
  EXPECT_EQ((outcome.out + outcome.err).find("SECRET"), std::string::npos);
}

COFFERDAM_FOR_BOTH_USERS(Logins);

}  // namespace
}  // namespace cofferdam::test
