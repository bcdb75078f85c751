// What comes out of a box: what is refused and kept, what is reported, work that ended on a full storage,
// checkpoints, and random work that comes back exactly as plain git would have committed it.
#include <signal.h>

#include <algorithm>

#include "base/text.h"
#include "e2e/endings.h"
#include "support/random_edits.h"

namespace cofferdam::test {
namespace {

using contract::Outcome;

class HandoffRules : public Ending {
 protected:
  RunOutcome run(const std::string& id, const std::string& script, std::vector<std::string> more = {}) {
    more.insert(more.end(), {"--config", world().config(), "--attempt-id", id});
    return run_script(script, more);
  }
  std::string diff(const std::string& id) const { return world().cofferdam({"diff", id}).out; }
  bool published(const std::string& id) const {
    return !world().git({"for-each-ref", "refs/heads/cofferdam/" + id}).empty();
  }
  static bool found(const RunOutcome& outcome, const std::string& rule, const std::string& action,
                    const std::string& path) {
    const auto& all = outcome.result->change.findings;
    return std::any_of(all.begin(), all.end(), [&](const contract::Finding& one) {
      return one.rule == rule && one.action == action && one.path == path;
    });
  }
};

// attacks.md G10, B7, isolation.md D 73. The control of each: the configuration lets it pass.
TEST_P(HandoffRules, WhatIsRefusedIsKeptAndNotPublished) {
  world().commit({{".gitattributes", "*.psd filter=lfs -text\n"}, {"a.psd", "pointer\n"}}, "drivers");
  const struct {
    const char* rule;
    const char* script;
    const char* path;
  } cases[] = {
      {"driver", "echo real > a.psd", "a.psd"},
      {"symlink-outside", "ln -s ../../etc/passwd way-out", "way-out"},
      {"control-name", "echo x > \"$(printf 'a\\033[31mb')\"", "a\x1b[31mb"},
  };
  for (const auto& [rule, script, path] : cases) {
    SCOPED_TRACE(rule);
    configure("");
    const RunOutcome refused =
        run(std::string("refused-") + rule, std::string(script) + "; echo fine > fine.txt");
    ASSERT_TRUE(refused.result.has_value()) << refused.err;
    EXPECT_EQ(refused.status.code, 1);
    EXPECT_EQ(refused.result->outcome, Outcome::failed);
    EXPECT_EQ(refused.result->cause.control, "handoff");
    EXPECT_NE(refused.result->cause.detail.find(rule), std::string::npos) << refused.result->cause.detail;
    EXPECT_TRUE(found(refused, rule, "refused", path)) << refused.out;
    EXPECT_FALSE(published(std::string("refused-") + rule));
    EXPECT_TRUE(refused.result->change.commit.has_value());
    EXPECT_NE(diff(std::string("refused-") + rule).find("+fine"), std::string::npos) << "the work is kept";
    configure(std::string("[handoff]\nreport = [\"") + rule + "\"]\n");
    const RunOutcome allowed = run(std::string("allowed-") + rule, script);
    EXPECT_EQ(allowed.status.code, 0) << allowed.err;
    EXPECT_TRUE(found(allowed, rule, "reported", path)) << allowed.out;
    EXPECT_TRUE(published(std::string("allowed-") + rule));
  }
}

// attacks.md A11, isolation.md D 77.
TEST_P(HandoffRules, OrdersToProgramsAreReportedOrRefusedAsTheUserWants) {
  const std::string script =
      "mkdir -p .github/workflows .husky .claude; echo 1 > .github/workflows/w.yml; echo 2 > "
      ".husky/pre-commit; "
      "echo 3 > .claude/settings.json; echo 4 > plain.txt";
  configure("");
  const RunOutcome reported = run("reported", script);
  EXPECT_EQ(reported.status.code, 0) << reported.err;
  EXPECT_TRUE(found(reported, "ci", "reported", ".github/workflows/w.yml"));
  EXPECT_TRUE(found(reported, "hook", "reported", ".husky/pre-commit"));
  EXPECT_TRUE(found(reported, "agent-config", "reported", ".claude/settings.json"));
  EXPECT_EQ(reported.result->change.findings.size(), 3U);
  configure("[handoff]\nrefuse = [\"hook\"]\n");
  const RunOutcome refused = run("hooked", script);
  EXPECT_EQ(refused.result->outcome, Outcome::failed);
  EXPECT_TRUE(found(refused, "hook", "refused", ".husky/pre-commit"));
}

TEST_P(HandoffRules, IgnoredFilesAreCountedAndListed) {
  world().commit({{".gitignore", "*.o\nout/\n"}}, "ignore");
  configure("");
  const RunOutcome outcome = run("ignoring", "echo 1 > a.o; mkdir out; echo 2 > out/b; echo 3 > c.txt");
  EXPECT_EQ(outcome.result->change.ignored_files, 2U);
  EXPECT_EQ(outcome.result->change.ignored, (std::vector<std::string>{"a.o", "out/b"}));
  EXPECT_EQ(world().git({"ls-tree", "--name-only", "cofferdam/ignoring", "c.txt", "a.o"}), "c.txt");
}

// What cannot become a commit is an archive that nobody opens: here a FIFO where git reads its rules.
TEST_P(HandoffRules, WhatCannotBeACommitIsKeptAsAnArchive) {
  configure("");
  const RunOutcome outcome = run("archived", "echo precious > work.txt; rm -f .gitignore; mkfifo .gitignore");
  EXPECT_EQ(outcome.result->outcome, Outcome::failed);
  EXPECT_EQ(outcome.result->cause.control, "handoff");
  const std::string archive = world().state() + "/attempts/archived/refused.tar";
  EXPECT_NE(outcome.result->cause.detail.find(archive), std::string::npos) << outcome.result->cause.detail;
  EXPECT_EQ(world().as_user({"/bin/tar", "-xOf", archive, "./work.txt"}).out, "precious\n");
  EXPECT_FALSE(published("archived"));
}

// attacks.md C20: bytes, inodes, memory. The snapshot has room of its own.
TEST_P(HandoffRules, WorkThatEndedOnAFullStorageIsStillCommitted) {
  const struct {
    const char* id;
    const char* limits;
    const char* script;
    const char* cause;
  } cases[] = {
      {"bytes", "work_bytes = 20000000\n", "cat /dev/zero > big.bin; exit 3", "work-bytes"},
      {"inodes", "work_inodes = 300\n",
       "mkdir d; i=0; while : > d/$i; do i=$((i+1)); done 2>/dev/null; exit 3", "work-inodes"},
      {"memory", "memory_bytes = 60000000\n", "exec /usr/bin/perl -e '$a = \"x\" x 200000000; sleep 600'",
       "memory"},
  };
  for (const auto& [id, limits, script, cause] : cases) {
    SCOPED_TRACE(id);
    configure(std::string("[limits]\n") + limits);
    const RunOutcome outcome = run(id, std::string("echo kept > kept.txt; ") + script);
    expect_settled(outcome);
    EXPECT_EQ(outcome.result->outcome, Outcome::limit) << outcome.result->cause.detail;
    EXPECT_EQ(outcome.result->cause.control, cause);
    ASSERT_TRUE(outcome.result->change.commit.has_value()) << outcome.err;
    EXPECT_NE(diff(id).find("+kept"), std::string::npos);
    EXPECT_FALSE(published(id)) << "only completed work is";
  }
}

// The repository's disk is full when the work comes home: of bytes, or of inodes. The work stays in the
// store, nothing of ours in the repository, and once there is room the command that the reason names
// publishes it.
TEST_P(HandoffRules, WorkForAFullDiskIsPublishedOnceThereIsRoom) {
  const std::string disk = world().home() + "/disk";
  world().as_user({"/bin/mkdir", disk});
  mutable_world().replace_files({"tmpfs=" + disk});
  constexpr const char* kScript = R"(
cd "$1"; id=$3
git clone -q "$2" repo; cd repo
git config user.name x; git config user.email x@example.org
look() { find .git/objects .git/refs | sort; }
look > ../../before
if [ $id = bytes ]; then dd if=/dev/zero of=../filler bs=4096 2> /dev/null || true
else mkdir ../filler; seq 2000 | (cd ../filler && xargs touch 2> /dev/null) || true; fi
"$4" run --json --attempt-id $id --repo . --agent command -- /bin/sh -c 'head -c 300000 /dev/urandom > new' \
  > ../../result || true
look > ../../after
"$4" recover > ../../still-full 2>&1 || true
look > ../../later
rm -r ../filler
"$4" recover > ../../recovered
git fsck --strict
git cat-file -s cofferdam/$id:new > ../../size
look | grep -c tmp_ > ../../left || true
)";
  for (const std::string id : {"bytes", "inodes"}) {
    SCOPED_TRACE(id);
    SpawnOptions options = world().cofferdam_options({});
    const std::string program = options.argv.back();
    options.argv.pop_back();
    for (const std::string& word : {std::string("/bin/sh"), std::string("-euc"), std::string(kScript),
                                    std::string("sh"), disk, world().repo(), id, program}) {
      options.argv.push_back(word);
    }
    auto done = run_capture(options, "", {});
    ASSERT_TRUE(done) << done.error().line();
    ASSERT_TRUE(done->status.success()) << done->out << done->err;
    const auto text = [&](const char* name) {
      return world().as_user({"/bin/cat", world().home() + "/" + name}).out;
    };
    auto result = contract::decode_result(trim(text("result")));
    ASSERT_TRUE(result) << text("result") << done->err;
    EXPECT_EQ(result->publication.state, "failed");
    EXPECT_NE(result->publication.reason.find("No space left"), std::string::npos)
        << result->publication.reason;
    EXPECT_NE(result->publication.reason.find("cofferdam recover"), std::string::npos);
    EXPECT_TRUE(result->change.commit.has_value());
    EXPECT_EQ(text("after"), text("before")) << "nothing is left in the repository";
    EXPECT_EQ(text("later"), text("before"));
    EXPECT_EQ(text("still-full").find("published"), std::string::npos) << text("still-full");
    EXPECT_NE(text("recovered").find("published refs/heads/cofferdam/" + id), std::string::npos)
        << text("recovered");
    EXPECT_EQ(text("size"), "300000\n");
    EXPECT_EQ(text("left"), "0\n");
  }
}

// N round trips, each on the branch of the one before.
TEST_P(HandoffRules, RandomWorkComesBackExactlyRoundAfterRound) {
  const unsigned seed = user() == User::root ? 100 : 200;
  const std::string copy = world().home() + "/copy";
  configure("[handoff]\nreport = [\"symlink-outside\", \"control-name\"]\n");
  world().write(world().home() + "/tree.sh", random_tree(seed));
  const std::string plain =
      " && git add -A && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m x && git clean "
      "-ffdxq && git "
      "rev-parse HEAD^{tree}";
  const Captured base = world().as_user(
      {"/bin/sh", "-c", "cd \"$1\" && sh ../home/tree.sh" + plain + " && git clone -q . \"$2\"", "sh",
       world().repo(), copy});
  ASSERT_TRUE(base.status.success()) << base.err;
  std::string from = "main";
  for (unsigned round = 1; round <= 4; ++round) {
    SCOPED_TRACE(round);
    const std::string edits = random_edits(seed + round, 25);
    const std::string id = "round-" + std::to_string(round);
    world().write(world().home() + "/edits.sh", edits);
    const Captured expected =
        world().as_user({"/bin/sh", "-c", "cd \"$1\" && sh ../edits.sh" + plain, "sh", copy});
    ASSERT_TRUE(expected.status.success()) << expected.err;
    const RunOutcome outcome = run(id, edits, {"--base", from});
    ASSERT_EQ(outcome.status.code, 0) << outcome.err;
    const std::string tree(split(trim(expected.out), '\n').back());
    if (outcome.result->change.ref.has_value()) from = "cofferdam/" + id;
    EXPECT_EQ(world().git({"rev-parse", from + "^{tree}"}), tree) << edits;
  }
}

class Checkpoint : public HandoffRules {
 protected:
  // Writes one.txt, says so, writes two.txt at SIGUSR1 and ends.
  std::vector<std::string> in_two_steps(const std::string& id, const std::string& tail) const {
    return {"run",
            "--json",
            "--config",
            world().config(),
            "--agent",
            "command",
            "--attempt-id",
            id,
            "--",
            "/bin/bash",
            "-c",
            "echo 1 > one.txt; exec bash -c 'trap \"echo 2 > two.txt; exit 0\" USR1; echo ready; while :; do "
            "sleep "
            "0.05; done' step$(printf ping)-" +
                tail};
  }
  void go_on(const std::string& tail) const {
    for (const int pid : processes_with("stepping-" + tail)) ::kill(pid, SIGUSR1);
  }
  std::vector<contract::Event> checkpoints_of(const std::string& id) const {
    std::vector<contract::Event> all = events_of(id);
    std::erase_if(all,
                  [](const contract::Event& one) { return one.type != contract::event_type::checkpointed; });
    return all;
  }
};

TEST_P(Checkpoint, SeveralCommitsComeOutInOrder) {
  configure("");
  const std::string tail = random_hex(8);
  Running running(world(), in_two_steps("steps", tail));
  Running::wait_for(printed_by("steps"), "ready");
  const RunOutcome first = world().cofferdam({"checkpoint", "--reason", "The first half", "steps"});
  EXPECT_EQ(first.status.code, 0) << first.err;
  const RunOutcome nothing = world().cofferdam({"checkpoint", "--json", "steps"});
  EXPECT_NE(nothing.out.find("\"commit\":null"), std::string::npos) << nothing.out << nothing.err;
  go_on(tail);
  const RunOutcome outcome = running.finish();
  ASSERT_EQ(outcome.status.code, 0) << outcome.err;
  const auto& commits = outcome.result->change.commits;
  ASSERT_EQ(commits.size(), 2U);
  EXPECT_EQ(commits[0].by, "command");
  EXPECT_EQ(commits[1].by, "end");
  EXPECT_EQ(outcome.result->change.commit, commits[1].commit);
  EXPECT_EQ(world().git({"rev-parse", "cofferdam/steps"}), commits[1].commit);
  EXPECT_EQ(world().git({"rev-parse", "cofferdam/steps^"}), commits[0].commit);
  EXPECT_EQ(world().git({"rev-parse", "cofferdam/steps~2"}), world().git({"rev-parse", "main"}));
  EXPECT_EQ(world().git({"log", "-1", "--format=%s", commits[0].commit}), "The first half");
  EXPECT_EQ(world().git({"diff", "--name-only", "main", commits[0].commit}), "one.txt");
  EXPECT_EQ(world().git({"diff", "--name-only", commits[0].commit, commits[1].commit}), "two.txt");
  EXPECT_EQ(world().git({"fsck", "--strict"}), "");
  EXPECT_NE(world().cofferdam({"checkpoint", "steps"}).status.code, 0) << "it has ended";
}

TEST_P(Checkpoint, WhatWouldBeRefusedIsNoCheckpoint) {
  configure("");
  const std::string tail = random_hex(8);
  Running running(
      world(), {"run", "--json", "--agent", "command", "--attempt-id", "sly", "--", "/bin/bash", "-c",
                "ln -s /etc/shadow out; exec bash -c 'trap \"rm out; echo 2 > two.txt; exit 0\" USR1; echo "
                "ready; while :; do sleep 0.05; done' step$(printf ping)-" +
                    tail});
  Running::wait_for(printed_by("sly"), "ready");
  const RunOutcome refused = world().cofferdam({"checkpoint", "sly"});
  EXPECT_EQ(refused.status.code, 3) << refused.err;
  EXPECT_NE(refused.err.find("symlink-outside: out"), std::string::npos) << refused.err;
  go_on(tail);
  const RunOutcome outcome = running.finish();
  EXPECT_EQ(outcome.status.code, 0) << outcome.err;
  EXPECT_EQ(world().git({"log", "--format=%H", "main..cofferdam/sly"}), *outcome.result->change.commit);
}

// The storage of the attempt goes with the machine; what had been committed by then is there.
TEST_P(Checkpoint, IsWhatIsLeftWhenTheStorageHasGone) {
  configure("[workspace]\nstorage = \"memory\"\n[recovery]\ncheckpoint_every = \"1s\"\n");
  const std::string tail = random_hex(8);
  Running running(world(), in_two_steps("safe", tail));
  Running::wait_for(printed_by("safe"), "ready");
  if (!comes_true([&] { return !checkpoints_of("safe").empty(); })) {
    running.child().signal(SIGTERM);
    FAIL() << running.finish().err;
  }
  auto keeper = read_file(world().state() + "/attempts/safe/keeper", 4096);
  ASSERT_TRUE(keeper);
  running.child().signal(SIGKILL);
  (void)running.finish();
  EXPECT_EQ(::kill(std::atoi(keeper->c_str()), SIGKILL), 0);
  EXPECT_EQ(world().cofferdam({"recover"}).status.code, 0);
  auto ledger = ledger::Ledger::open(ledger::ledger_path(world().state()));
  ASSERT_TRUE(ledger);
  auto record = ledger->find("safe");
  ASSERT_TRUE(record && record->has_value() && (*record)->result.has_value());
  auto result = contract::decode_result(*(*record)->result);
  ASSERT_TRUE(result) << result.error().line();
  EXPECT_EQ(result->outcome, Outcome::lost);
  EXPECT_TRUE(result->change.commit.has_value());
  EXPECT_TRUE(result->change.commits.empty()) << "nobody had asked for it";
  EXPECT_FALSE(published("safe"));
  EXPECT_NE(diff("safe").find("one.txt"), std::string::npos);
}

COFFERDAM_FOR_BOTH_USERS(HandoffRules);
COFFERDAM_FOR_BOTH_USERS(Checkpoint);

}  // namespace
}  // namespace cofferdam::test
