// argv and environment of each agent in each phase, as golden values: they are what the box will run.
#include "agent/launch.h"

#include <gtest/gtest.h>

#include "contract/json.h"
#include "contract/plan_answer.h"
#include "unit/agent/agents_folder.h"

namespace cofferdam::agent {
namespace {

using contract::Phase;

constexpr const char* kPackage = "/node_modules/@anthropic-ai/claude-code-linux-x64";

const Texts kGatewayEnv = {"ANTHROPIC_BASE_URL=http://127.0.0.1:8111",
                           "ANTHROPIC_API_KEY=sk-ant-api03-placeholder"};

class LaunchTest : public AgentsFolder {
 protected:
  void install(unsigned mode) { add_program(std::string(kPackage) + "/claude", mode); }
};

const Texts kClaudeArgv = {
    "/opt/agent/claude",        "-p",      "--output-format", "stream-json",       "--verbose",
    "--no-session-persistence", "--model", "claude-sonnet-5", "--setting-sources", "",
    "--strict-mcp-config"};

TEST_F(LaunchTest, ClaudeImplementation) {
  install(0755);
  Result<Launch> launch = plan(claude_fields(Phase::implementation));
  ASSERT_TRUE(launch) << launch.error().line();
  const Texts tail = {"--permission-mode", "bypassPermissions", "--tools", "Read,Grep,Glob,Edit,Write,Bash"};
  EXPECT_EQ(launch->argv, kClaudeArgv + tail);
  const Texts own = {"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_AUTOUPDATER=1",
                     "CLAUDE_CODE_MAX_RETRIES=3"};
  EXPECT_EQ(launch->env, kBaseEnv + kGatewayEnv + own);
  EXPECT_EQ(launch->stdin_text, "Do the task.");
  EXPECT_EQ(launch->agent_dir, folder() + kPackage);
  EXPECT_EQ(launch->version, "2.1.197");
}

TEST_F(LaunchTest, ClaudeReadOnlyPhases) {
  install(0755);
  const Texts tail = {"--permission-mode", "dontAsk", "--tools", "Read,Grep,Glob"};
  for (Phase phase : {Phase::question, Phase::review}) {
    Result<Launch> launch = plan(claude_fields(phase));
    ASSERT_TRUE(launch) << launch.error().line();
    EXPECT_EQ(launch->argv, kClaudeArgv + tail);
  }
  Result<Launch> launch = plan(claude_fields(Phase::planning));
  ASSERT_TRUE(launch) << launch.error().line();
  const Texts schema = {"--json-schema", contract::plan_answer_schema()};
  EXPECT_EQ(launch->argv, kClaudeArgv + tail + schema);
}

TEST_F(LaunchTest, ClaudePromptIsNeverACommandOfTheCli) {
  install(0755);
  contract::InvocationFields fields = claude_fields(Phase::question);
  fields.prompt = "/etc/fstab looks odd, why?";
  Result<Launch> launch = plan(fields);
  ASSERT_TRUE(launch) << launch.error().line();
  EXPECT_EQ(launch->stdin_text, "\n/etc/fstab looks odd, why?");
}

TEST_F(LaunchTest, ClaudeMissingOrNotExecutable) {
  Result<Launch> missing = plan(claude_fields(Phase::question));
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, Code::missing_tool);
  EXPECT_NE(missing.error().hint.find("./quickstart"), std::string::npos);
  install(0644);
  Result<Launch> plain_file = plan(claude_fields(Phase::question));
  ASSERT_FALSE(plain_file);
  EXPECT_EQ(plain_file.error().code, Code::missing_tool);
}

TEST_F(LaunchTest, CommandHasItsArgvAndNothingElse) {
  Result<Launch> launch = plan(command_fields({"/bin/sh", "-c", "exit 0"}), 0);
  ASSERT_TRUE(launch) << launch.error().line();
  EXPECT_EQ(launch->argv, (Texts{"/bin/sh", "-c", "exit 0"}));
  EXPECT_EQ(launch->env, kBaseEnv);
  EXPECT_EQ(launch->stdin_text, "");
  EXPECT_EQ(launch->agent_dir, "");
  EXPECT_EQ(launch->version, "");
}

TEST_F(LaunchTest, ALoginHasAPlaceholderOfItsOwn) {
  contract::InvocationFields fields = command_fields({"curl"});
  fields.egress = contract::Vendor::anthropic;
  const contract::Invocation invocation = built(fields);
  Result<Launch> launch = plan_launch(LaunchInput{invocation, folder(), 8111, 0, true});
  ASSERT_TRUE(launch) << launch.error().line();
  EXPECT_EQ(launch->env, (kBaseEnv + Texts{"ANTHROPIC_BASE_URL=http://127.0.0.1:8111",
                                           "CLAUDE_CODE_OAUTH_TOKEN=sk-ant-oat01-placeholder"}));
}

TEST_F(LaunchTest, CommandWithEgressGetsTheGateway) {
  contract::InvocationFields fields = command_fields({"curl"});
  fields.egress = contract::Vendor::anthropic;
  Result<Launch> launch = plan(fields);
  ASSERT_TRUE(launch) << launch.error().line();
  EXPECT_EQ(launch->env, kBaseEnv + kGatewayEnv);
  Result<Launch> without_gateway = plan(fields, 0);
  ASSERT_FALSE(without_gateway);
  EXPECT_EQ(without_gateway.error().code, Code::internal);
}

TEST_F(LaunchTest, WithDestinationsThereIsAProxyAndLoopbackIsNotProxied) {
  const contract::Invocation invocation = built(command_fields({"curl"}));
  Result<Launch> launch = plan_launch(LaunchInput{invocation, folder(), 0, 8112, false});
  ASSERT_TRUE(launch) << launch.error().line();
  EXPECT_EQ(launch->env,
            (kBaseEnv + Texts{"HTTPS_PROXY=http://127.0.0.1:8112", "HTTP_PROXY=http://127.0.0.1:8112",
                              "https_proxy=http://127.0.0.1:8112", "http_proxy=http://127.0.0.1:8112",
                              "NO_PROXY=127.0.0.1,localhost", "no_proxy=127.0.0.1,localhost"}));
}

TEST_F(LaunchTest, CommandWithEgressToTheOtherVendor) {
  contract::InvocationFields fields = command_fields({"curl"});
  fields.egress = contract::Vendor::openai;
  Result<Launch> launch = plan(fields);
  ASSERT_TRUE(launch) << launch.error().line();
  const Texts gateway = {"OPENAI_BASE_URL=http://127.0.0.1:8111/v1", "OPENAI_API_KEY=sk-placeholder"};
  EXPECT_EQ(launch->env, kBaseEnv + gateway);
}

// The versions in the code are the versions that npm installs.
TEST(LaunchVersion, IsThePinnedOne) {
  Result<std::string> text = read_file(std::string(COFFERDAM_SOURCE_DIR) + "/agents/package.json", 1U << 16U);
  ASSERT_TRUE(text) << text.error().line();
  Result<contract::Json> package = contract::parse_json(*text, 1U << 16U);
  ASSERT_TRUE(package) << package.error().line();
  EXPECT_EQ((*package)["dependencies"]["@anthropic-ai/claude-code-linux-x64"], "2.1.197");
  EXPECT_EQ((*package)["dependencies"]["@openai/codex-linux-x64"], "npm:@openai/codex@0.171.0-linux-x64");
}

}  // namespace
}  // namespace cofferdam::agent
