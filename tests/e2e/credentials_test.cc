// Where the vendor's credential comes from, seen end to end: what the vendor gets, and that the box gets
// none.
#include "base/file.h"
#include "base/text.h"
#include "contract/json.h"
#include "e2e/fixture.h"

namespace cofferdam::test {
namespace {

using contract::Json;

constexpr const char* kAsk = "{\"turns\": [{\"blocks\": [{\"text\": \"It says hello.\"}]}]}";

class Credentials : public EndToEnd {
 protected:
  RunOutcome run(std::vector<std::string> args) {
    args.insert(args.begin() + 1, {"--json", "--config", world().config(), "--model", "claude-sonnet-5"});
    return world().cofferdam(args);
  }
  // A program in the box that shows its environment and asks the vendor once.
  RunOutcome show_environment() {
    return run({"run", "--agent", "command", "--egress", "anthropic", "--attempt-id", "shown", "--",
                "/bin/sh", "-c", "env > environment"});
  }
  void expect_login_at_the_vendor() {
    const std::vector<Json> seen = asked("/v1/messages");
    ASSERT_FALSE(seen.empty());
    for (const Json& request : seen) {
      const Json& headers = request["headers"];
      EXPECT_EQ(headers.value("authorization", ""), std::string("Bearer ") + kTestLogin);
      EXPECT_FALSE(headers.contains("x-api-key"));
      EXPECT_NE(headers.value("anthropic-beta", "").find("oauth-2025-04-20"), std::string::npos);
    }
  }
};

// The real CLI believes that it has a login; the vendor sees the real one.
TEST_P(Credentials, ClaudeWorksWithALogin) {
  if (IsSkipped() || HasFatalFailure() || !need_claude()) return;
  use_standin(kAsk, kTestLogin);
  mutable_world().extra_env = {std::string("CLAUDE_CODE_OAUTH_TOKEN=") + kTestLogin};
  RunOutcome outcome = run({"ask", "--attempt-id", "asked", "What does it say?"});
  ASSERT_TRUE(outcome.result.has_value()) << outcome.out << outcome.err;
  EXPECT_EQ(outcome.status.code, 0) << outcome.out;
  EXPECT_EQ(outcome.result->answer, "It says hello.");
  ASSERT_TRUE(outcome.result->usage.cost_usd.has_value());
  EXPECT_GT(*outcome.result->usage.cost_usd, 0);
  EXPECT_TRUE(outcome.result->usage.agent_cost_usd.has_value());
  expect_login_at_the_vendor();
  EXPECT_EQ((outcome.out + outcome.err).find("SECRET"), std::string::npos);
}

TEST_P(Credentials, TheBoxHasAPlaceholderOfTheSameShape) {
  if (IsSkipped() || HasFatalFailure()) return;
  use_standin(kAsk, kTestLogin);
  mutable_world().extra_env = {std::string("CLAUDE_CODE_OAUTH_TOKEN=") + kTestLogin};
  RunOutcome outcome = show_environment();
  ASSERT_EQ(outcome.status.code, 0) << outcome.out << outcome.err;
  const std::string environment = world().git({"show", "cofferdam/shown:environment"});
  EXPECT_NE(environment.find("CLAUDE_CODE_OAUTH_TOKEN=sk-ant-oat01-placeholder"), std::string::npos)
      << environment;
  EXPECT_EQ(environment.find("ANTHROPIC_API_KEY"), std::string::npos);
  EXPECT_EQ(environment.find("SECRET"), std::string::npos);
  Captured found = world().as_user({"/bin/sh", "-c", "grep -rl SECRET " + world().state() + " || true"});
  EXPECT_EQ(found.out, "");
}

TEST_P(Credentials, AnExpiredLoginIsRefusedBeforeTheStart) {
  if (IsSkipped() || HasFatalFailure()) return;
  use_standin(kAsk, kTestLogin,
              "credential = \"file\"\ncredential_file = \"" + world().home() + "/login.json\"\n");
  world().write(world().home() + "/login.json",
                R"({"claudeAiOauth":{"accessToken":"sk-ant-oat01-test-SECRET","expiresAt":1000}})", 0600);
  RunOutcome outcome = show_environment();
  EXPECT_EQ(outcome.status.code, 3) << outcome.out;
  EXPECT_NE(outcome.err.find("login expired"), std::string::npos) << outcome.err;
  EXPECT_EQ((outcome.out + outcome.err).find("SECRET"), std::string::npos);
  EXPECT_TRUE(standin().requests().empty());
}

TEST_P(Credentials, BodiesAreCapturedOnlyWhenAskedAndNeverWithTheCredential) {
  if (IsSkipped() || HasFatalFailure() || !need_claude()) return;
  use_standin(
      R"({"turns": [{"blocks": [{"text": "It says hello."}]}, {"blocks": [{"text": "It says hello."}]}]})");
  RunOutcome plain = run({"ask", "--attempt-id", "plain", "What does it say?"});
  ASSERT_EQ(plain.status.code, 0) << plain.err;
  EXPECT_FALSE(exists(world().state() + "/attempts/plain/bodies.ndjson"));
  EXPECT_EQ(plain.err.find("WARNING"), std::string::npos);
  RunOutcome outcome = run({"ask", "--capture-bodies", "--attempt-id", "kept", "What does it say?"});
  ASSERT_EQ(outcome.status.code, 0) << outcome.err;
  EXPECT_NE(outcome.err.find("WARNING: bodies are captured"), std::string::npos) << outcome.err;
  auto bodies = read_file(world().state() + "/attempts/kept/bodies.ndjson", 64U << 20U);
  ASSERT_TRUE(bodies.has_value());
  EXPECT_NE(bodies->find("What does it say?"), std::string::npos);
  EXPECT_NE(bodies->find("It says hello."), std::string::npos);
  EXPECT_EQ(bodies->find("SECRET"), std::string::npos);
}

TEST_P(Credentials, ALimitOfCostNeedsAPrice) {
  if (IsSkipped() || HasFatalFailure()) return;
  use_standin(kAsk, kTestKey, "[limits]\ncost_usd_micros = 1000\n");
  RunOutcome outcome =
      world().cofferdam({"run", "--json", "--config", world().config(), "--model", "unheard-of", "--agent",
                         "command", "--egress", "anthropic", "--", "/bin/true"});
  EXPECT_EQ(outcome.status.code, 3) << outcome.out;
  EXPECT_NE(outcome.err.find("unheard-of"), std::string::npos) << outcome.err;
}

COFFERDAM_FOR_BOTH_USERS(Credentials);

}  // namespace
}  // namespace cofferdam::test
