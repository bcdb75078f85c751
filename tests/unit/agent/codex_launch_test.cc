// How Codex is started, as golden values: they are what the box will run.
#include <gtest/gtest.h>

#include "contract/plan_answer.h"
#include "unit/agent/agents_folder.h"

namespace cofferdam::agent {
namespace {

using contract::HomeFile;
using contract::Phase;

constexpr const char* kPrograms =
    "/node_modules/@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin";

class CodexLaunch : public AgentsFolder {
 protected:
  void install() {
    add_program(std::string(kPrograms) + "/codex", 0755);
    add_program(std::string(kPrograms) + "/codex-code-mode-host", 0755);
  }
};

const Texts kCodexArgv = {"/opt/agent/codex",
                          "exec",
                          "--json",
                          "--ephemeral",
                          "--skip-git-repo-check",
                          "--strict-config",
                          "-s",
                          "danger-full-access",
                          "-m",
                          "gpt-6.2-sol"};

std::string golden_config() {
  Result<std::string> text =
      read_file(std::string(COFFERDAM_SOURCE_DIR) + "/tests/unit/agent/codex-config.toml", 1U << 16U);
  EXPECT_TRUE(text) << text.error().line();
  return text ? *text : "";
}

TEST_F(CodexLaunch, EveryPhaseButPlanning) {
  install();
  for (Phase phase : {Phase::implementation, Phase::question, Phase::review}) {
    Result<Launch> launch = plan(codex_fields(phase));
    ASSERT_TRUE(launch) << launch.error().line();
    EXPECT_EQ(launch->argv, kCodexArgv + Texts{"-"});
    // No key, not even a placeholder: the CLI then sends no Authorization at all.
    EXPECT_EQ(launch->env, kBaseEnv);
    EXPECT_EQ(launch->stdin_text, "Do the task.");
    EXPECT_EQ(launch->agent_dir, folder() + kPrograms);
    EXPECT_EQ(launch->version, "0.171.0");
    const std::vector<HomeFile> files = {{".codex/config.toml", golden_config()}};
    EXPECT_EQ(launch->home_files, files);
  }
}

TEST_F(CodexLaunch, PlanningHasTheSchemaInHome) {
  install();
  Result<Launch> launch = plan(codex_fields(Phase::planning));
  ASSERT_TRUE(launch) << launch.error().line();
  const Texts tail = {"--output-schema", "/home/agent/plan-answer.schema.json", "-"};
  EXPECT_EQ(launch->argv, kCodexArgv + tail);
  const std::vector<HomeFile> files = {{".codex/config.toml", golden_config()},
                                       {"plan-answer.schema.json", contract::plan_answer_schema()}};
  EXPECT_EQ(launch->home_files, files);
}

TEST_F(CodexLaunch, BothProgramsAreNeeded) {
  for (const char* program : {"codex", "codex-code-mode-host"}) {
    Result<Launch> missing = plan(codex_fields(Phase::question));
    ASSERT_FALSE(missing);
    EXPECT_EQ(missing.error().code, Code::missing_tool);
    EXPECT_NE(missing.error().what.find(std::string(": no ") + program), std::string::npos)
        << missing.error().what;
    EXPECT_NE(missing.error().hint.find("./quickstart"), std::string::npos);
    add_program(std::string(kPrograms) + "/" + program, 0755);
  }
  EXPECT_TRUE(plan(codex_fields(Phase::question)));
}

}  // namespace
}  // namespace cofferdam::agent
