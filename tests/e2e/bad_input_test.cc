// Bad input: one clear line that says what to do, the documented exit code, nothing left behind.
#include "base/text.h"
#include "e2e/fixture.h"

namespace cofferdam::test {
namespace {

class BadInput : public EndToEnd {
 protected:
  // Runs, checks code and message, and that nothing of it remains.
  void expect_refusal(const std::vector<std::string>& args, int code, const std::string& words,
                      const std::string& input = {}) {
    const std::string before = world().fingerprint(world().repo());
    RunOutcome outcome = world().cofferdam(args, input);
    EXPECT_EQ(outcome.status.code, code) << outcome.err;
    std::vector<std::string> lines = split(trim(outcome.err), '\n');
    ASSERT_FALSE(lines.empty());
    EXPECT_EQ(lines.size(), 1U) << outcome.err;
    EXPECT_NE(lines.back().find(words), std::string::npos) << lines.back();
    EXPECT_EQ(outcome.out, "");
    EXPECT_EQ(world().fingerprint(world().repo()), before);
    auto attempts = list_dir(world().state() + "/attempts");
    EXPECT_TRUE(!attempts || attempts->empty()) << "a folder of an attempt is left";
  }
};

TEST_P(BadInput, NotARepository) {
  const std::string folder = world().home();
  expect_refusal({"run", "--agent", "command", "--repo", folder, "--", "true"}, 2, "not in a git repository");
}

TEST_P(BadInput, UnbornHead) {
  const std::string fresh = world().home() + "/fresh";
  ASSERT_TRUE(world().as_user({"/usr/bin/git", "init", "-q", fresh}).status.success());
  expect_refusal({"run", "--agent", "command", "--repo", fresh, "--", "true"}, 2, "commit");
}

TEST_P(BadInput, UnknownRevision) {
  expect_refusal({"run", "--agent", "command", "--base", "no-such-branch", "--", "true"}, 2,
                 "no-such-branch");
}

TEST_P(BadInput, MissingAgent) {
  mutable_world().extra_env = {"COFFERDAM_AGENTS_DIR=/nonexistent",
                               std::string("ANTHROPIC_API_KEY=") + kTestKey};
  expect_refusal({"ask", "--model", "claude-sonnet-5", "hello"}, 6, "quickstart");
}

TEST_P(BadInput, NoCredential) {
  if (!need_claude()) return;
  expect_refusal({"ask", "--model", "claude-sonnet-5", "hello"}, 2, "ANTHROPIC_API_KEY");
}

TEST_P(BadInput, UnreadableConfiguration) {
  expect_refusal({"ask", "--config", world().home() + "/absent.toml", "hello"}, 2, "absent.toml");
  world().write(world().config(), "[limits]\nwork_byte = 5\n");
  expect_refusal({"ask", "--config", world().config(), "hello"}, 2, "work_byte");
  world().write(world().config(), "this is not toml");
  expect_refusal({"ask", "--config", world().config(), "hello"}, 2, "config.toml");
}

TEST_P(BadInput, InvalidInvocation) {
  expect_refusal({"exec", "-"}, 2, "JSON", "this is not JSON\n");
  expect_refusal({"exec", "-"}, 2, "$.phase",
                 R"({"schema":"cofferdam.invocation/1","attempt_id":"a","phase":"dreaming"})");
}

TEST_P(BadInput, MissingProgramInTheBox) {
  RunOutcome outcome = world().cofferdam({"run", "--json", "--agent", "command", "--", "no-such-program"});
  EXPECT_EQ(outcome.status.code, 6) << outcome.err;
  ASSERT_TRUE(outcome.result.has_value());
  EXPECT_EQ(outcome.result->cause.control, "program");
}

TEST_P(BadInput, AttemptIdIsUsedOnce) {
  ASSERT_EQ(run_script("true", {"--attempt-id", "once"}).status.code, 0);
  RunOutcome again = world().cofferdam({"run", "--agent", "command", "--attempt-id", "once", "--", "true"});
  EXPECT_EQ(again.status.code, 3) << again.err;
  EXPECT_NE(again.err.find("once"), std::string::npos);
}

TEST_P(BadInput, BranchNamedLikeThePrefix) {
  world().git({"branch", "cofferdam"});
  RunOutcome outcome = run_script("echo x > x", {"--attempt-id", "blocked"});
  EXPECT_EQ(outcome.status.code, 1);
  EXPECT_EQ(outcome.result->cause.control, "publication");
  EXPECT_NE(outcome.result->publication.reason.find("prefix"), std::string::npos)
      << outcome.result->publication.reason;
  EXPECT_TRUE(outcome.result->change.commit.has_value()) << "the work is kept";
  world().write(world().config(), "[branch]\nprefix = \"agents\"\n");
  RunOutcome other = run_script("echo x > x", {"--attempt-id", "free", "--config", world().config()});
  EXPECT_EQ(other.result->change.ref, "refs/heads/agents/free");
}

COFFERDAM_FOR_BOTH_USERS(BadInput);

}  // namespace
}  // namespace cofferdam::test
