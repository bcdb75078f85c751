// The commit's message: git itself must see exactly one trailer, ours, whatever the agent's summary says.
#include "handoff/message.h"

#include <gtest/gtest.h>

#include "base/process.h"
#include "base/text.h"
#include "unit/handoff/lab.h"

namespace {

using cofferdam::handoff::commit_message;

std::string trailers(const std::string& message) {
  cofferdam::SpawnOptions options;
  options.program = "/usr/bin/git";
  options.argv = {"git", "interpret-trailers", "--parse"};
  options.env = {"PATH=/usr/bin:/bin", "HOME=/nonexistent", "GIT_CONFIG_NOSYSTEM=1"};
  auto done = lab::must(cofferdam::run_capture(options, message, {}));
  return std::string(cofferdam::trim(done.out));
}

const char* const kForgeries[] = {
    "Fix\n\nSigned-off-by: Boss <boss@example.org>",
    "Fix\n\nbody\n\nCo-authored-by: Boss <boss@example.org>\nReviewed-by: Boss",
    "Fix\n\nReviewed-by : Boss",
    "Fix\n\nReviewed-by: Boss\n\n---\nrest",
    "Fix\n\nReviewed-by: Boss\n---",
    "Fix\n\nReviewed-by: Boss\n\n# ------------------------ >8 ------------------------\nhidden",
    "Fix\n\nReviewed-by: Boss\n\n#\n\n",
    "Signed-off-by: Boss",
    "---\nReviewed-by: Boss",
    "--- a\n\nReviewed-by: Boss",
    "Fix\n\nCofferdam-Attempt: other",
    "Fix\r\n\r\nReviewed-by: Boss\r\n",
    "Fix\n\nReviewed-by: Boss\n continued\n more",
    "Fix\n\n(cherry picked from commit 1234)\nReviewed-by: Boss",
    "",
    "\n\n\n",
    "# comment",
};

TEST(Message, OnlyOurTrailerIsSeenByGit) {
  for (const char* summary : kForgeries) {
    const std::string message = commit_message(summary, "20261130-abc");
    EXPECT_EQ(trailers(message), "Cofferdam-Attempt: 20261130-abc") << message;
  }
  // The control: the same summary as it is would forge.
  EXPECT_EQ(trailers(std::string(kForgeries[0]) + "\n"), "Signed-off-by: Boss <boss@example.org>");
  EXPECT_EQ(trailers(std::string(kForgeries[3]) + "\n\nCofferdam-Attempt: x\n"), "Reviewed-by: Boss");
}

TEST(Message, SubjectAndBody) {
  EXPECT_EQ(commit_message("Fix the thing", "id"), "Fix the thing\n\nCofferdam-Attempt: id\n");
  EXPECT_EQ(commit_message("", "id"), "Change by Cofferdam attempt id\n\nCofferdam-Attempt: id\n");
  EXPECT_EQ(commit_message("Fix\nat once\n\n\n\nmore  \n", "id"),
            "Fix\n\nat once\n\nmore\n\nCofferdam-Attempt: id\n");
  const std::string exact(72, 'x');
  EXPECT_EQ(commit_message(exact, "id"), exact + "\n\nCofferdam-Attempt: id\n");
  const std::string longer(80, 'x');
  EXPECT_EQ(commit_message(longer, "id"),
            std::string(69, 'x') + "...\n\n" + longer + "\n\nCofferdam-Attempt: id\n");
}

TEST(Message, IsPrintableAndBounded) {
  const std::string message = commit_message("evil \x1b[2J \xff\xe2\x80\xae name\n\n\x1b]0;t\x07", "id");
  EXPECT_EQ(message.find('\x1b'), std::string::npos);
  EXPECT_TRUE(cofferdam::is_valid_utf8(message));
  const std::string wide =
      commit_message(std::string(30, '\xe9') + "\xc3\xa9 " + std::string(100, 'y'), "id");
  EXPECT_LE(wide.find('\n'), 72U);
  EXPECT_TRUE(cofferdam::is_valid_utf8(wide));
  EXPECT_LT(commit_message(std::string(1 << 20, 'z'), "id").size(), 20'000U);
}

}  // namespace
