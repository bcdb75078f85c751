#include "cli/render.h"

#include <gtest/gtest.h>

namespace cofferdam::cli {
namespace {

contract::ResultRecord published() {
  contract::ResultRecord result;
  result.attempt_id = "20261130-3f9a2c71d0";
  result.phase = contract::Phase::implementation;
  result.outcome = contract::Outcome::completed;
  result.cause = {"exit", "exit code 0", {}};
  result.process.exit_code = 0;
  result.summary = "Fixed the test.";
  result.change.base = std::string(40, 'a');
  result.change.commit = std::string(40, 'b');
  result.change.ref = "refs/heads/cofferdam/20261130-3f9a2c71d0";
  result.change.files = {{"src/add.c", "modified"}};
  result.change.file_count = 1;
  result.publication = {"published", ""};
  result.agent = {"claude", "2.1.197", "claude-sonnet-5"};
  result.usage = {3, 1200, 300, 0.0125, 0.013};
  result.vendor_upstream = "https://api.anthropic.com";
  return result;
}

TEST(Render, PublishedChange) {
  EXPECT_EQ(render_result(published(), {}),
            "completed  20261130-3f9a2c71d0  (implementation, claude 2.1.197, claude-sonnet-5)\n"
            "cause      exit: exit code 0\n"
            "\nFixed the test.\n\n"
            "branch     cofferdam/20261130-3f9a2c71d0\n"
            "commit     bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb\n"
            "changed    1 file\n"
            "  modified     src/add.c\n"
            "look       git diff aaaaaaaaaaaa..cofferdam/20261130-3f9a2c71d0\n"
            "look       cofferdam diff 20261130-3f9a2c71d0\n"
            "usage      3 requests (0 denied), 1200 tokens in, 300 out, $0.0125 at list price, $0.0130 by "
            "the agent's account\n");
}

TEST(Render, WhatIsNotAsUsualIsSaid) {
  auto result = published();
  result.outcome = contract::Outcome::cancelled;
  result.process.exit_code.reset();
  result.process.signal = 15;
  result.cancel = contract::CancelFacts{{0}, "command", "no longer needed"};
  result.change.ref.reset();
  result.publication = {"none", "only completed attempts are published"};
  result.change.findings = {{"nested-git", "lib/.git", "dropped"}};
  result.change.ignored_files = 2;
  result.controls = {{"pinned-root", false, false, "the host's /usr"},
                     {"no-network", true, true, "inside probe"}};
  result.vendor_upstream = "https://127.0.0.1:8443";
  const std::string text = render_result(result, {});
  for (const char* part :
       {"cancelled  20261130", "process    ended by signal 15", "cancelled  by command at 1970-01-01",
        ": no longer needed", "finding    nested-git (dropped): lib/.git", "left out   2 ignored files",
        "published  no: only completed attempts are published", "cofferdam diff 20261130-3f9a2c71d0",
        "weaker     pinned-root: not enforced, the host's /usr",
        "vendor     stand-in or internal gateway: https://127.0.0.1:8443"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\nin\n" << text;
  }
  EXPECT_EQ(text.find("git diff"), std::string::npos) << "there is no branch to look at";
  EXPECT_EQ(text.find("no-network"), std::string::npos);
}

TEST(Render, NothingOfTheAgentReachesTheTerminalRaw) {
  auto result = published();
  const std::string evil = "\x1b]0;owned\x07\xE2\x80\xAE\x9b";
  result.summary = evil;
  result.answer = evil;
  result.cause.detail = evil;
  result.cancel = contract::CancelFacts{{0}, evil, evil};
  result.change.files = {{"a\nb" + evil, evil}};
  result.change.findings = {{evil, evil, evil}};
  result.change.ref = "refs/heads/" + evil;
  result.publication.reason = evil;
  result.agent = {"claude", evil, evil};
  result.controls = {{evil, true, false, evil}};
  result.vendor_upstream = evil;
  for (const auto phase : {contract::Phase::implementation, contract::Phase::planning}) {
    result.phase = phase;
    const std::string text = render_result(result, {});
    for (const char* part : {"\x1b", "\x07", "\xE2\x80\xAE", "a\nb"}) {
      EXPECT_EQ(text.find(part), std::string::npos) << text;
    }
  }
}

TEST(Render, ColorOnlyWhenAskedFor) {
  EXPECT_NE(render_result(published(), {true}).find("\033[1;32mcompleted\033[0m"), std::string::npos);
  EXPECT_EQ(render_result(published(), {false}).find('\033'), std::string::npos);
}

TEST(Render, LongListsAreCutWithTheirTrueNumber) {
  auto result = published();
  result.change.files.assign(300, {"f", "added"});
  result.change.file_count = 12'345;
  EXPECT_NE(render_result(result, {}).find("... and 12145 more"), std::string::npos);
}

TEST(RenderPlan, IsReadable) {
  const std::string plan =
      R"({"summary":"Split it.","steps":[{"title":"Move the lexer","detail":"to lexer.c"},)"
      R"({"title":"Adapt the build","detail":""}],"files":["parser.c"],"risks":["none"],"commands":["make test"]})";
  EXPECT_EQ(render_plan(plan),
            "Split it.\n\n1. Move the lexer\n   to lexer.c\n2. Adapt the build\n"
            "\nFiles\n  - parser.c\n\nRisks\n  - none\n"
            "\nCommands it proposes (not run, not granted)\n  - make test\n");
  EXPECT_EQ(render_plan("no plan"), "no plan");
}

}  // namespace
}  // namespace cofferdam::cli
