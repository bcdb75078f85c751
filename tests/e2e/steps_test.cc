// Commits at the agents' own steps, with the real CLIs against the stand-in vendor.
#include <signal.h>

#include "base/file.h"
#include "base/text.h"
#include "e2e/endings.h"

namespace cofferdam::test {
namespace {

// The agent writes one.txt, says that the first step is done, waits in a command until it is told to go on,
// writes two.txt and ends.
class Steps : public Ending {
 protected:
  static std::string waiting(const std::string& tail) {
    return R"(bash -c 'trap \"exit 0\" USR1; while :; do sleep 0.05; done' step$(printf ping)-)" + tail;
  }
  static std::string turns(const std::string& shell, const std::string& list, const std::string& tail,
                           const std::string& more) {
    const auto call = [&](const std::string& text) {
      return "{\"blocks\":[{\"tool_use\":{\"name\":\"" + shell + "\",\"input\":{" + more + text + "}}}]}";
    };
    const std::string key = shell == "Bash" ? "\"command\":\"" : "\"cmd\":\"";
    return "{\"turns\":[" + call(key + "echo 1 > one.txt\"") + "," + list + "," +
           call(key + waiting(tail) + "\"") + "," + call(key + "echo 2 > two.txt\"") +
           ",{\"blocks\":[{\"text\":\"done\"}]}]}";
  }
  RunOutcome run(const std::string& agent, const std::string& model, const std::string& tail) {
    Running running(world(), {"run", "--json", "--config", world().config(), "--agent", agent, "--model",
                              model, "--attempt-id", "steps", "Do it in steps"});
    // The ledger is the product's to make: opened by us before, it would be root's.
    EXPECT_TRUE(comes_true([&] {
      return exists(ledger::ledger_path(world().state())) &&
             has_event("steps", contract::event_type::checkpointed);
    }));
    EXPECT_TRUE(comes_true([&] { return !processes_with("stepping-" + tail).empty(); }));
    for (const int pid : processes_with("stepping-" + tail)) ::kill(pid, SIGUSR1);
    return running.finish();
  }
  void expect_two_commits(const RunOutcome& outcome) const {
    ASSERT_EQ(outcome.status.code, 0) << outcome.err << outcome.out;
    const auto& commits = outcome.result->change.commits;
    ASSERT_EQ(commits.size(), 2U) << outcome.err;
    EXPECT_EQ(commits[0].by, "agent");
    EXPECT_EQ(commits[1].by, "end");
    EXPECT_EQ(world().git({"log", "-1", "--format=%s", commits[0].commit}), "Write the first file");
    EXPECT_EQ(world().git({"diff", "--name-only", "main", commits[0].commit}), "one.txt");
    EXPECT_EQ(world().git({"diff", "--name-only", commits[0].commit, commits[1].commit}), "two.txt");
    EXPECT_EQ(world().git({"rev-parse", "cofferdam/steps"}), commits[1].commit);
  }
};

TEST_P(Steps, ClaudeLeavesACommitForEachOfItsSteps) {
  if (!need_agent("claude")) return;
  const std::string tail = random_hex(8);
  const std::string list =
      R"({"blocks":[{"tool_use":{"name":"TodoWrite","input":{"todos":[
        {"content":"Write the first file","status":"completed","activeForm":"Writing the first file"},
        {"content":"Write the second file","status":"in_progress","activeForm":"Writing the second file"}]}}}]})";
  use_standin(turns("Bash", list, tail, R"("description":"x",)"), kTestKey, "[commit]\nsteps = true\n");
  expect_two_commits(run("claude", "claude-sonnet-5", tail));
}

TEST_P(Steps, CodexLeavesACommitForEachOfItsSteps) {
  if (!need_agent("codex")) return;
  const std::string tail = random_hex(8);
  const std::string list =
      R"({"blocks":[{"tool_use":{"name":"update_plan","input":{"plan":[
        {"step":"Write the first file","status":"completed"},
        {"step":"Write the second file","status":"in_progress"}]}}}]})";
  use_standin(turns("exec_command", list, tail, R"("yield_time_ms":60000,)"), kTestKey,
              "[commit]\nsteps = true\n");
  expect_two_commits(run("codex", "gpt-5.5", tail));
}

// The control of both: without the line of configuration there is no list, and one commit.
TEST_P(Steps, WithoutTheConfigurationThereIsOneCommit) {
  if (!need_agent("codex")) return;
  use_standin(R"({"turns":[
    {"blocks":[{"tool_use":{"name":"exec_command","input":{"cmd":"echo 1 > one.txt"}}}]},
    {"blocks":[{"tool_use":{"name":"update_plan","input":{"plan":[{"step":"Write it","status":"completed"}]}}}]},
    {"blocks":[{"text":"done"}]}]})");
  const RunOutcome outcome =
      world().cofferdam({"run", "--json", "--config", world().config(), "--agent", "codex", "--model",
                         "gpt-5.5", "--attempt-id", "steps", "Do it"});
  ASSERT_EQ(outcome.status.code, 0) << outcome.err << outcome.out;
  EXPECT_EQ(outcome.result->change.commits.size(), 1U);
  EXPECT_FALSE(has_event("steps", contract::event_type::checkpointed));
}

COFFERDAM_FOR_BOTH_USERS(Steps);

}  // namespace
}  // namespace cofferdam::test
