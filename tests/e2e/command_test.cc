// Any command in a box: its change comes back as a branch, and nothing else of the repository moves.
#include "base/text.h"
#include "e2e/fixture.h"

namespace cofferdam::test {
namespace {

class Command : public EndToEnd {};

// The tree that plain git makes of the same change in a trusted copy.
std::string expected_tree(const World& world, const std::string& script) {
  const std::string copy = world.root() + "/home/copy";
  Captured made = world.as_user(
      {"/bin/sh", "-c",
       "git clone -q \"$1\" \"$2\" && cd \"$2\" && " + script + " && git add -A && git write-tree", "sh",
       world.repo(), copy});
  EXPECT_TRUE(made.status.success()) << made.err;
  std::vector<std::string> lines = split(trim(made.out), '\n');
  return lines.empty() ? "" : lines.back();
}

TEST_P(Command, ChangeComesBackAsBranch) {
  const std::string script =
      "printf 'more\\n' >> src/a.txt && mkdir -p d/e && printf '#!/bin/sh\\n' > d/e/run && "
      "chmod 755 d/e/run && ln -s e/run d/link && rm README.md";
  const std::string tree = expected_tree(world(), script);
  const std::string head = world().git({"rev-parse", "HEAD"});

  RunOutcome outcome = run_script(script, {"--attempt-id", "first-run"});

  ASSERT_EQ(outcome.status.code, 0) << outcome.err;
  EXPECT_EQ(outcome.result->outcome, contract::Outcome::completed);
  EXPECT_EQ(outcome.result->change.ref, "refs/heads/cofferdam/first-run");
  EXPECT_EQ(world().git({"rev-parse", "cofferdam/first-run^{tree}"}), tree);
  EXPECT_EQ(outcome.result->change.tree, tree);
  EXPECT_EQ(world().git({"rev-parse", "cofferdam/first-run^"}), head);
  EXPECT_EQ(world().git({"log", "-1", "--format=%an <%ae>", "cofferdam/first-run"}),
            "Cofferdam <cofferdam@localhost>");
  EXPECT_EQ(world().git({"fsck", "--strict"}), "");
  EXPECT_EQ(outcome.result->change.file_count, 4U);
}

// A program of the host's, alone with its libraries; what it could start with a shell around it, it cannot.
TEST_P(Command, WithoutAShellNothingElseRuns) {
  const auto run = [this](const std::string& shell, const std::vector<std::string>& argv) {
    std::vector<std::string> args = {"run",     "--json", "--repo", world().repo(), "--agent", "command",
                                     "--shell", shell,    "--"};
    args.insert(args.end(), argv.begin(), argv.end());
    return world().cofferdam(args);
  };
  const RunOutcome touched = run("none", {"/usr/bin/touch", "/workspace/made"});
  EXPECT_EQ(touched.status.code, 0) << touched.err;
  ASSERT_TRUE(touched.result.has_value());
  EXPECT_EQ(touched.result->shell, contract::Shell::none);
  EXPECT_EQ(touched.result->change.file_count, 1U);
  const RunOutcome denied = run("none", {"/usr/bin/env", "/bin/true"});
  EXPECT_EQ(denied.status.code, 1) << denied.err;
  EXPECT_EQ(run("sandboxed", {"/usr/bin/env", "/bin/true"}).status.code, 0) << "the control";
}

TEST_P(Command, RepositoryIsOtherwiseUntouched) {
  world().write(world().repo() + "/.git/hooks/post-checkout",
                "#!/bin/sh\ntouch " + world().home() + "/hook-ran\n", 0755);
  world().write(world().repo() + "/.git/hooks/reference-transaction",
                "#!/bin/sh\ntouch " + world().home() + "/hook-ran\n", 0755);
  world().write(world().repo() + "/untracked.txt", "not committed\n");
  world().write(world().repo() + "/src/a.txt", "edited, not committed\n");
  const std::vector<std::string> objects = {world().repo() + "/.git/objects"};
  const std::string before = world().fingerprint(world().repo(), objects);

  RunOutcome outcome = run_script("echo x > new.txt", {"--attempt-id", "quiet"});

  ASSERT_EQ(outcome.status.code, 0) << outcome.err;
  std::vector<std::string> added = objects;
  added.push_back(world().repo() + "/.git/refs/heads/cofferdam");
  // The folder's own time changes with the new entry; names and contents must not.
  EXPECT_EQ(world().fingerprint(world().repo(), added), before);
  EXPECT_FALSE(exists(world().home() + "/hook-ran"));
  EXPECT_FALSE(exists(world().repo() + "/.git/logs/refs/heads/cofferdam/quiet"));
  // The control: plain git does run that hook.
  world().git({"update-ref", "refs/heads/control", "HEAD"});
  EXPECT_TRUE(exists(world().home() + "/hook-ran"));
}

TEST_P(Command, BuildsARealProgram) {
  world().commit(
      {{"Makefile", "all: hello\nhello: hello.c\n\tcc -Wall -o hello hello.c\ntest: hello\n\t./hello\n"},
       {"hello.c", "#include <stdio.h>\nint main(void) { puts(\"built in the box\"); return 0; }\n"},
       {".gitignore", "hello\n"}},
      "a program");
  RunOutcome outcome = run_script("make test > build.log && cat build.log");
  ASSERT_EQ(outcome.status.code, 0) << outcome.err;
  const std::string commit = outcome.result->change.commit.value_or("");
  EXPECT_NE(world().git({"show", commit + ":build.log"}).find("built in the box"), std::string::npos);
  EXPECT_EQ(outcome.result->change.ignored_files, 1U);
  EXPECT_EQ(outcome.result->change.file_count, 1U);
}

TEST_P(Command, GitReadsWorkInside) {
  RunOutcome outcome = run_script(
      "set -e; test -z \"$(git status --porcelain)\"; echo y >> src/a.txt; git diff > diff.txt; "
      "git log --format=%s > log.txt; git status --porcelain > status.txt; "
      "if git commit -qam no 2> /dev/null; then exit 9; fi; "
      "if git config user.name x 2> /dev/null; then exit 8; fi");
  ASSERT_EQ(outcome.status.code, 0) << outcome.err;
  const std::string commit = outcome.result->change.commit.value_or("");
  EXPECT_EQ(world().git({"show", commit + ":log.txt"}), "first");
  EXPECT_NE(world().git({"show", commit + ":diff.txt"}).find("+y"), std::string::npos);
  EXPECT_NE(world().git({"show", commit + ":status.txt"}).find("M src/a.txt"), std::string::npos);
}

TEST_P(Command, BoxSeesOnlyWhatTheHeadReaches) {
  world().git({"checkout", "-q", "-b", "secret"});
  world().commit({{"secret.txt", "another branch\n"}}, "secret");
  const std::string blob = world().git({"rev-parse", "secret:secret.txt"});
  world().git({"checkout", "-q", "main"});
  const std::string readme = world().git({"rev-parse", "main:README.md"});
  RunOutcome outcome = run_script(
      "git cat-file --batch-all-objects --batch-check > all.txt; "
      "git for-each-ref > refs.txt; git config --list > config.txt; cat all.txt");
  ASSERT_EQ(outcome.status.code, 0) << outcome.err;
  const std::string commit = outcome.result->change.commit.value_or("");
  const std::string all = world().git({"show", commit + ":all.txt"});
  EXPECT_EQ(all.find(blob), std::string::npos) << "an object of another branch is visible";
  EXPECT_NE(all.find(readme), std::string::npos) << "the control: objects of the head are there";
  EXPECT_EQ(world().git({"show", commit + ":config.txt"}).find("Test User"), std::string::npos);
}

TEST_P(Command, FailedCommandKeepsItsWorkButPublishesNothing) {
  RunOutcome outcome = run_script("echo half > half.txt; exit 3", {"--attempt-id", "half"});
  EXPECT_EQ(outcome.status.code, 1);
  EXPECT_EQ(outcome.result->outcome, contract::Outcome::failed);
  EXPECT_EQ(outcome.result->process.exit_code, 3);
  EXPECT_FALSE(outcome.result->change.ref.has_value());
  EXPECT_EQ(world().git({"for-each-ref", "refs/heads/cofferdam"}), "");
  RunOutcome diff = world().cofferdam({"diff", "half"});
  EXPECT_EQ(diff.status.code, 0) << diff.err;
  EXPECT_NE(diff.out.find("+half"), std::string::npos);
}

TEST_P(Command, NothingChangedIsSaid) {
  RunOutcome outcome = run_script("true");
  EXPECT_EQ(outcome.status.code, 0);
  EXPECT_EQ(outcome.result->publication.state, "none");
  EXPECT_EQ(outcome.result->change.file_count, 0U);
  EXPECT_EQ(world().git({"for-each-ref", "refs/heads/cofferdam"}), "");
}

TEST_P(Command, ReadingVerbsTellTheSameStory) {
  RunOutcome outcome = run_script("echo x > x.txt", {"--attempt-id", "told"});
  ASSERT_EQ(outcome.status.code, 0) << outcome.err;
  RunOutcome show = world().cofferdam({"show", "--json", "told"});
  ASSERT_TRUE(show.result.has_value()) << show.out << show.err;
  EXPECT_EQ(contract::encode_result(*show.result), contract::encode_result(*outcome.result));
  EXPECT_EQ(show.result->chain_head.size(), 64U);
  RunOutcome list = world().cofferdam({"list", "--json"});
  EXPECT_NE(list.out.find("\"told\""), std::string::npos) << list.out;
  RunOutcome diff = world().cofferdam({"diff", "told"});
  EXPECT_NE(diff.out.find("+x"), std::string::npos) << diff.out << diff.err;
}

COFFERDAM_FOR_BOTH_USERS(Command);

}  // namespace
}  // namespace cofferdam::test
