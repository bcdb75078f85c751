// argv and environment of each agent in each phase, as golden values: they are what the box will run.
#include "agent/launch.h"

#include <gtest/gtest.h>

#include "base/file.h"
#include "contract/json.h"
#include "contract/plan_answer.h"
#include "unit/agent/invocations.h"

namespace cofferdam::agent {
namespace {

using contract::Phase;
using Texts = std::vector<std::string>;

constexpr const char* kPackage = "/node_modules/@anthropic-ai/claude-code-linux-x64";

const Texts kBaseEnv = {"HOME=/home/agent",    "PATH=/usr/local/bin:/usr/bin:/bin",
                        "LANG=C.UTF-8",        "TMPDIR=/tmp",
                        "TERM=dumb",           "HUSKY=0",
                        "GIT_OPTIONAL_LOCKS=0"};
const Texts kGatewayEnv = {"ANTHROPIC_BASE_URL=http://127.0.0.1:8111",
                           "ANTHROPIC_API_KEY=sk-ant-api03-placeholder"};

Texts operator+(Texts left, const Texts& right) {
  left.insert(left.end(), right.begin(), right.end());
  return left;
}

// An agents folder in which only the modes and names are real.
class LaunchTest : public ::testing::Test {
 protected:
  void SetUp() override {
    Result<TempDir> dir = TempDir::create("/tmp", "cofferdam-agents-");
    ASSERT_TRUE(dir) << dir.error().line();
    dir_ = std::make_unique<TempDir>(*std::move(dir));
    ASSERT_TRUE(make_dirs(dir_->path() + kPackage));
  }
  void install(unsigned mode) {
    ASSERT_TRUE(write_file_atomic(dir_->path() + kPackage + "/claude", "", mode));
  }

  Result<Launch> plan(const contract::InvocationFields& fields, std::uint16_t port = 8111) {
    const contract::Invocation invocation = built(fields);
    return plan_launch(LaunchInput{invocation, dir_->path(), port});
  }

  std::unique_ptr<TempDir> dir_;
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
  EXPECT_EQ(launch->agent_dir, dir_->path() + kPackage);
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
  Result<Launch> launch = plan_launch(LaunchInput{invocation, dir_->path(), 8111, true});
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

// The version in the code is the version that npm installs.
TEST(LaunchVersion, IsThePinnedOne) {
  Result<std::string> text = read_file(std::string(COFFERDAM_SOURCE_DIR) + "/agents/package.json", 1U << 16U);
  ASSERT_TRUE(text) << text.error().line();
  Result<contract::Json> package = contract::parse_json(*text, 1U << 16U);
  ASSERT_TRUE(package) << package.error().line();
  EXPECT_EQ((*package)["dependencies"]["@anthropic-ai/claude-code-linux-x64"], "2.1.197");
}

}  // namespace
}  // namespace cofferdam::agent
