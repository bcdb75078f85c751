// What comes in from the user's repository, whatever kind it is, and that nothing else does.
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "e2e/running.h"

namespace cofferdam::test {
namespace {

class Sources : public EndToEnd {
 protected:
  // A script of the user's, in the test's folder; its standard output.
  std::string sh(const std::string& script) const {
    Captured done =
        world().as_user({"/bin/sh", "-euc", "cd " + world().root() + "/home; " + kIdentity + script});
    EXPECT_TRUE(done.status.success()) << script << "\n" << done.err;
    return std::string(trim(done.out));
  }
  std::string at(const std::string& name) const { return world().home() + "/" + name; }
  std::string git_at(const std::string& folder, const std::string& words) const {
    return sh("git -C " + at(folder) + " " + words);
  }
  static constexpr const char* kIdentity =
      "export GIT_AUTHOR_NAME=User GIT_AUTHOR_EMAIL=u@example.org GIT_COMMITTER_NAME=User "
      "GIT_COMMITTER_EMAIL=u@example.org; ";
};

struct Kind {
  const char* name;
  const char* make;
  const char* open;
  const char* objects;  // where they and the branch come
  const char* kind;
};

// attacks.md A10, A12, A15
constexpr Kind kKinds[] = {
    {"linked", "git -C ../repo worktree add -q -b topic $PWD/linked", "linked", "../repo/.git",
     "linked-work-tree"},
    {"submodule",
     "git init -q super; git -C super -c protocol.file.allow=always submodule --quiet add $PWD/../repo sub",
     "super/sub", "super/.git/modules/sub", "submodule"},
    {"bare", "git clone -q --bare ../repo bare.git", "bare.git", "bare.git", "bare"},
    {"elsewhere", "git clone -q --separate-git-dir=$PWD/kept ../repo apart", "apart", "kept", "work-tree"},
    {"symlinked", "mkdir moved; cp -r ../repo/.git real.git; ln -s ../real.git moved/.git", "moved",
     "real.git", "work-tree"},
    {"shallow",
     "git -C ../repo commit -q --allow-empty -m 2; git clone -q --depth 1 file://$PWD/../repo shallow",
     "shallow", "shallow/.git", "work-tree"},
    {"sha256", "git init -q --object-format=sha256 s; printf 1 > s/a; git -C s add a; git -C s commit -qm 1",
     "s", "s/.git", "work-tree"},
};

TEST_P(Sources, EveryKindGetsItsBranchAndNothingElse) {
  for (const Kind& kind : kKinds) {
    SCOPED_TRACE(kind.name);
    sh(kind.make);
    const std::string head = git_at(kind.open, "rev-parse HEAD");
    const std::string objects = git_at(kind.open, "rev-parse --path-format=absolute --git-path objects");
    const std::string before = world().fingerprint(at(kind.open), {objects});
    RunOutcome outcome =
        run_script("git log --oneline | wc -l; git status --porcelain; echo new > new.txt",
                   {"--repo", at(kind.open), "--attempt-id", std::string("kind-") + kind.name});
    ASSERT_EQ(outcome.status.code, 0) << outcome.err;
    const std::string ref = *outcome.result->change.ref;
    EXPECT_EQ(git_at(kind.open, "rev-parse " + ref + "^"), head);
    EXPECT_EQ(git_at(kind.open, "show " + ref + ":new.txt"), "new");
    EXPECT_EQ(git_at(kind.open, "fsck --no-dangling"), "");
    EXPECT_EQ(outcome.result->clone->repository, sh("realpath " + std::string(kind.objects)));
    ASSERT_TRUE(outcome.result->source.has_value());
    EXPECT_EQ(outcome.result->source->kind, kind.kind);
    git_at(kind.open, "update-ref -d " + ref);
    sh("rmdir " + outcome.result->clone->repository + "/refs/heads/cofferdam 2> /dev/null || true");
    EXPECT_EQ(world().fingerprint(at(kind.open), {objects}), before);
  }
}

TEST_P(Sources, HistoryNoneGivesTheCommitAndItsTree) {
  world().commit({{"src/a.txt", "beta\n"}}, "second");
  const std::string old = world().git({"rev-parse", "HEAD~:src/a.txt"});
  const std::string head = world().git({"rev-parse", "HEAD"});
  const std::string script =
      "git log --oneline | wc -l; git cat-file -e " + old + " && echo old; echo x > x; true";
  RunOutcome none = run_script(script, {"--history", "none"});
  ASSERT_EQ(none.status.code, 0) << none.err;
  EXPECT_EQ(printed(none), "1\n");
  EXPECT_EQ(world().git({"rev-parse", *none.result->change.commit + "^"}), head);
  EXPECT_EQ(none.result->clone->history, contract::History::none);
  RunOutcome diff = world().cofferdam({"diff", none.result->attempt_id});
  EXPECT_NE(diff.out.find("+x"), std::string::npos) << diff.err;
  RunOutcome full = run_script(script);
  EXPECT_EQ(printed(full), "2\nold\n") << "the control";
}

TEST_P(Sources, UncommittedFilesComeAlongWhenAskedFor) {
  const std::string head = world().git({"rev-parse", "HEAD"});
  world().write(world().repo() + "/src/a.txt", "edited\n");
  world().write(world().repo() + "/untracked.txt", "untracked\n");
  const std::string script = "cat src/a.txt; ls; echo more >> src/a.txt";
  RunOutcome without = run_script(script);
  EXPECT_EQ(printed(without), "alpha\nREADME.md\nsrc\n");
  EXPECT_EQ(without.result->source->dirty_files, 1U);
  EXPECT_EQ(without.result->source->untracked_files, 1U);
  EXPECT_NE(without.err.find("1 changed file is not part of this: --include-dirty takes it along"),
            std::string::npos)
      << without.err;
  const std::vector<std::string> own = {world().repo() + "/.git/objects", world().repo() + "/.git/refs"};
  const std::string before = world().fingerprint(world().repo(), own);
  RunOutcome dirty = run_script(script, {"--include-dirty", "--attempt-id", "dirty"});
  ASSERT_EQ(dirty.status.code, 0) << dirty.err;
  EXPECT_EQ(printed(dirty), "edited\nREADME.md\nsrc\n");
  EXPECT_EQ(world().git({"show", "cofferdam/dirty:src/a.txt"}), "edited\nmore");
  EXPECT_EQ(world().git({"rev-parse", "cofferdam/dirty~2"}), head);
  EXPECT_EQ(world().git({"rev-parse", "cofferdam/dirty~1"}), dirty.result->change.base);
  EXPECT_EQ(dirty.result->clone->base, dirty.result->change.base);
  EXPECT_EQ(world().git({"show", "cofferdam/dirty~1:src/a.txt"}), "edited");
  EXPECT_EQ(dirty.result->change.file_count, 1U);
  RunOutcome untracked = run_script(script, {"--include-dirty", "--include-untracked"});
  EXPECT_EQ(printed(untracked), "edited\nREADME.md\nsrc\nuntracked.txt\n");
  EXPECT_EQ(world().fingerprint(world().repo(), own), before);
  EXPECT_EQ(world().git({"fsck", "--no-dangling"}), "");
}

// attacks.md G3: B looks while A is under way, and again when A's commit is in its store and in the
// repository.
TEST_P(Sources, AttemptsInParallelSeeNoObjectOfOneAnother) {
  world().write(world().home() + "/loose", "an unreachable blob\n");
  const std::string unreachable = world().git({"hash-object", "-w", world().home() + "/loose"});
  const std::string readme = world().git({"rev-parse", "HEAD:README.md"});
  const std::string list = "git cat-file --batch-all-objects '--batch-check=%(objectname)'";
  Running other(world(), {"run", "--json", "--attempt-id", "looker", "--agent", "command", "--", "/bin/sh",
                          "-c", "while true; do echo round; " + list + "; done"});
  const std::string seen = world().state() + "/attempts/looker/stdout";
  Running::wait_for(seen, "round");
  RunOutcome made = run_script(list + "; echo made-by-a > made.txt", {"--attempt-id", "maker"});
  ASSERT_EQ(made.status.code, 0) << made.err;
  const std::string commit = *made.result->change.commit;
  const std::string blob = world().git({"rev-parse", commit + ":made.txt"});
  // Whole rounds from now on.
  auto before = read_file(seen, 64U << 20U);
  ASSERT_TRUE(before);
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  std::string rounds;
  while (std::chrono::steady_clock::now() < end) {
    auto now = read_file(seen, 64U << 20U);
    rounds = now && now->size() > before->size() ? now->substr(before->size()) : "";
    const std::size_t first = rounds.find("round\n");
    if (first != std::string::npos && rounds.find("round\n", first + 1) != std::string::npos) break;
    ::usleep(20'000);  // a poll of a condition
  }
  EXPECT_EQ(world().cofferdam({"cancel", "looker"}).status.code, 0);
  other.finish();
  EXPECT_NE(rounds.find(readme), std::string::npos) << "the control: objects of the head are there";
  for (const std::string& id : {commit, blob, unreachable}) {
    EXPECT_EQ(rounds.find(id), std::string::npos) << id;
    EXPECT_EQ(printed(made).find(id), std::string::npos) << id;
    EXPECT_EQ(world().git({"cat-file", "-t", id}).empty(), false) << "the control: it is in the repository";
  }
}

// attacks.md A16, A17, A19: the attempt stands still while the host's git removes, packs and prunes. Where
// the base has gone too, the branch brings its history along, if the attempt was given all of it.
TEST_P(Sources, HostMaintenanceDuringARunHarmsNeitherSide) {
  world().git({"checkout", "-q", "-b", "topic"});
  world().commit({{"topic.txt", "below\n"}}, "below");
  world().commit({{"topic.txt", "topic\n"}}, "topic");
  world().git({"checkout", "-q", "main"});
  world().git({"tag", "kept", "topic"});
  const std::string head = world().git({"rev-parse", "topic"});
  const struct {
    const char* id;
    const char* history;
    bool gone;
  } cases[] = {{"packed", "full", false}, {"cut", "none", true}, {"pruned", "full", true}};
  for (const auto& [name, history, gone] : cases) {
    SCOPED_TRACE(name);
    const std::string id = name;
    const std::string marker = "standstill-" + random_hex(8);
    sh("git -C ../repo fetch -q $PWD/away topic:topic 2> /dev/null || git clone -q ../repo away -b topic");
    Running run(world(), {"run", "--json", "--base", head, "--history", history, "--attempt-id", id,
                          "--agent", "command", "--", "/bin/sh", "-c",
                          ": " + marker +
                              "; echo ready; kill -STOP $$; git fsck --full && git log -p | wc -l && "
                              "echo more >> topic.txt"});
    Running::wait_for(world().state() + "/attempts/" + id + "/stdout", "ready");
    const int shell = box_shell(marker);
    ASSERT_GT(shell, 0);
    world().git({"branch", "-D", "topic"});
    if (gone) sh("git -C ../repo tag -d kept || true; git -C ../repo branch -D cofferdam/packed || true");
    world().git({"reflog", "expire", "--expire=now", "--all"});
    world().git({"gc", "-q", "--prune=now"});
    world().git({"repack", "-qad"});
    const bool there = sh("git -C ../repo cat-file -e " + head + " && echo there || true") == "there";
    EXPECT_EQ(there, !gone) << "the control";
    EXPECT_EQ(::kill(shell, SIGCONT), 0);
    RunOutcome outcome = run.finish();
    ASSERT_TRUE(outcome.result.has_value()) << outcome.err;
    EXPECT_EQ(outcome.result->process.exit_code, 0) << outcome.err;
    EXPECT_NE(world().cofferdam({"diff", id}).out.find("+more"), std::string::npos);
    EXPECT_EQ(world().git({"fsck", "--no-dangling"}), "");
    const bool lands = id != "cut";
    EXPECT_EQ(outcome.result->publication.state, lands ? "published" : "failed");
    if (!lands) {
      const std::string& reason = outcome.result->publication.reason;
      EXPECT_NE(reason.find("no longer has " + head), std::string::npos) << reason;
      EXPECT_NE(reason.find("cofferdam recover"), std::string::npos) << reason;
      EXPECT_EQ(sh("ls -A ../repo/.git/objects | grep -c tmp_ || true"), "0");
      sh("git -C ../repo fetch -q $PWD/away topic:topic");
      EXPECT_NE(world().cofferdam({"recover"}).out.find("published refs/heads/cofferdam/cut"),
                std::string::npos);
      world().git({"branch", "-D", "cofferdam/cut"});
      continue;
    }
    EXPECT_EQ(world().git({"show", "cofferdam/" + id + ":topic.txt"}), "topic\nmore");
    EXPECT_EQ(world().git({"rev-list", "--count", "main..cofferdam/" + id}), "3") << "with its history";
    EXPECT_EQ(world().git({"rev-parse", "cofferdam/" + id + "^"}), head);
  }
}

// The same for a change that is applied: the branch is behind the base that has gone.
TEST_P(Sources, WorkOnAPrunedBaseCanBeApplied) {
  world().git({"checkout", "-q", "-b", "topic"});
  world().commit({{"topic.txt", "topic\n"}}, "topic");
  RunOutcome outcome = run_script("echo more >> topic.txt; exit 1", {"--attempt-id", "work"});
  ASSERT_TRUE(outcome.result->change.commit.has_value()) << outcome.err;
  const std::string head = world().git({"rev-parse", "topic"});
  world().git({"checkout", "-q", "main"});
  world().git({"branch", "-D", "topic"});
  world().git({"reflog", "expire", "--expire=now", "--all"});
  world().git({"gc", "-q", "--prune=now"});
  EXPECT_EQ(sh("git -C ../repo cat-file -e " + head + " || echo gone"), "gone") << "the control";
  RunOutcome applied = world().cofferdam({"apply", "work"});
  ASSERT_EQ(applied.status.code, 0) << applied.err << applied.out;
  EXPECT_EQ(world().git({"rev-parse", "HEAD", "HEAD^"}), *outcome.result->change.commit + "\n" + head);
  EXPECT_EQ(world().git({"fsck", "--strict"}), "");
}

// A repository that git cannot read to its end: one of its objects never comes.
TEST_P(Sources, CancelAndDeadlineEndThePacking) {
  const std::string blob = world().git({"rev-parse", "HEAD:README.md"});
  const std::string object = world().repo() + "/.git/objects/" + blob.substr(0, 2) + "/" + blob.substr(2);
  sh("mv " + object + " object; mkfifo " + object);
  RunOutcome late = run_script("true", {"--deadline", "1s"});
  EXPECT_EQ(late.result->outcome, contract::Outcome::limit) << late.err;
  EXPECT_EQ(late.result->cause.control, "deadline");
  Running run(world(), {"run", "--json", "--attempt-id", "stuck", "--agent", "command", "--", "/bin/true"});
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!exists(world().state() + "/attempts/stuck/control") && std::chrono::steady_clock::now() < end) {
    ::usleep(20'000);  // a poll of a condition
  }
  EXPECT_EQ(world().cofferdam({"cancel", "stuck"}).status.code, 0);
  RunOutcome outcome = run.finish();
  EXPECT_EQ(outcome.status.code, 5) << outcome.err;
  EXPECT_EQ(sh("find ../state/vault -name '.new-*'"), "") << "half a base is left";
  sh("rm " + object + "; mv object " + object);
  EXPECT_EQ(run_script("true").status.code, 0) << "the control";
}

// What was uncommitted is the base of a recovered attempt too.
TEST_P(Sources, UncommittedFilesSurviveTheSupervisor) {
  world().write(world().repo() + "/src/a.txt", "edited\n");
  Running run(world(),
              {"run", "--json", "--include-dirty", "--history", "none", "--attempt-id", "orphan", "--agent",
               "command", "--", "/bin/sh", "-c", "echo more >> src/a.txt; echo ready; kill -STOP $$"});
  Running::wait_for(world().state() + "/attempts/orphan/stdout", "ready");
  run.child().signal(SIGKILL);
  run.finish();
  EXPECT_EQ(world().cofferdam({"recover"}).status.code, 0);
  RunOutcome shown = world().cofferdam({"show", "--json", "orphan"});
  ASSERT_TRUE(shown.result.has_value()) << shown.out << shown.err;
  EXPECT_EQ(shown.result->outcome, contract::Outcome::lost);
  EXPECT_EQ(shown.result->change.base, shown.result->clone->base);
  const std::string diff = world().cofferdam({"diff", "orphan"}).out;
  EXPECT_NE(diff.find(" edited\n+more\n"), std::string::npos) << diff;
}

// A16: an alternate is read with the rights of the repository's owner, whoever runs Cofferdam.
TEST_P(Sources, AlternatesOfRootAreNotReadForOthers) {
  if (!running_as_root()) return skip_or_fail("root", "a repository of root's is needed");
  sh("git clone -q --bare ../repo lent.git; git clone -q --shared lent.git borrower; git -C borrower config "
     "gc.auto 0");
  const auto as_root = [this](const std::string& script) {
    SpawnOptions options;
    options.program = "/bin/sh";
    options.argv = {"sh", "-euc", "cd " + world().home() + "; chmod 755 .. .; " + script};
    auto done = run_capture(options, "", {});
    EXPECT_TRUE(done && done->status.success()) << script;
  };
  as_root("chown -R 12345:12345 borrower; chown -R 0:0 lent.git; chmod -R a+rX lent.git; chmod 700 lent.git");
  auto head = world().as_user({"/bin/cat", at("lent.git") + "/HEAD"});
  EXPECT_EQ(head.status.success(), GetParam() == User::root) << "the control: root itself can read it";
  const std::vector<std::string> more = {"--repo", at("borrower")};
  RunOutcome denied =
      world().cofferdam({"run", "--json", "--repo", at("borrower"), "--agent", "command", "--", "/bin/true"});
  EXPECT_NE(denied.status.code, 0);
  EXPECT_FALSE(denied.result.has_value()) << "nothing was started";
  EXPECT_NE(denied.err.find("is not there or cannot be read"), std::string::npos) << denied.err;
  as_root("chmod 755 lent.git");
  RunOutcome taken = run_script("cat README.md; find .git/objects/info -type f", more);
  EXPECT_EQ(printed(taken), "# Sample\n\nHello\n") << "the control";
  EXPECT_EQ(sh("find ../state/vault -name alternates"), "");
}

// attacks.md A2, A3, A5: the metadata are not the agent's, and no `.git` of its own comes back.
TEST_P(Sources, AgentsMetadataLeadNowhere) {
  const std::string mark = world().home() + "/marked";
  const std::string plant =
      "mkdir -p /tmp/bad; printf '[core]\\n\\tfsmonitor = touch " + mark +
      "\\n' > /tmp/bad/config; "
      "(echo /tmp/bad > .git/commondir) 2> /dev/null && echo planted commondir; "
      "(cp /tmp/bad/config .git/config.worktree) 2> /dev/null && echo planted config.worktree; "
      "(cp /tmp/bad/config .git/config) 2> /dev/null && echo planted config; "
      "rm -rf .git 2> /dev/null; test -e .git/config || echo removed; ";
  RunOutcome outcome =
      run_script(plant +
                     "mkdir -p vendor/sub; git init -q vendor/sub; "
                     "cp /tmp/bad/config vendor/sub/.git/config; echo f > vendor/sub/file; true",
                 {"--attempt-id", "planted"});
  ASSERT_EQ(outcome.status.code, 0) << outcome.err;
  EXPECT_EQ(printed(outcome), "");
  EXPECT_EQ(world().git({"diff", "--name-only", "main", "cofferdam/planted"}), "vendor/sub/file");
  sh("git -C ../repo status; git clone -q ../repo seen; cd seen; git checkout -q cofferdam/planted; git "
     "status");
  EXPECT_FALSE(exists(mark));
  // The control: where the metadata are one's own, all of it is planted, and runs.
  EXPECT_NE(sh("git clone -q ../repo control; cd control; (echo x > .git/commondir) && echo planted; "
               "rm .git/commondir; git config core.fsmonitor 'touch " +
               mark + "'; git status > /dev/null; true"),
            "");
  EXPECT_TRUE(exists(mark));
}

// attacks.md G13: git is wary of a repository of somebody else's. Root works as its owner, and what it adds
// is the owner's; anybody else may read what he can read.
TEST_P(Sources, AnotherUsersRepositoryIsTaken) {
  if (!running_as_root()) return skip_or_fail("root", "a repository of another user's is needed");
  const bool root = GetParam() == User::root;
  const std::string owner = root ? "12345:12345" : "0:0";
  SpawnOptions give;
  give.program = "/bin/sh";
  give.argv = {"sh", "-c", "chown -R \"$1\" \"$2\" && chmod -R a+rX \"$2\"", "sh", owner, world().repo()};
  auto given = run_capture(give, "", {});
  ASSERT_TRUE(given && given->status.success());
  ASSERT_EQ(::chmod(world().root().c_str(), 0755), 0);
  EXPECT_NE(world().as_user({"/usr/bin/git", "-C", world().repo(), "status"}).status.code, 0)
      << "the control";
  RunOutcome outcome = run_script(root ? "echo x > x" : "true", {"--attempt-id", "his"});
  ASSERT_EQ(outcome.status.code, 0) << outcome.err;
  if (!root) return;
  EXPECT_EQ(sh("find ../repo ! -uid 12345 -o ! -gid 12345"), "");
  EXPECT_NE(sh("find ../repo/.git -name his"), "");
}

COFFERDAM_FOR_BOTH_USERS(Sources);

}  // namespace
}  // namespace cofferdam::test
