// Commits of Cofferdam's that are signed on the host: of an attempt, of a merge, and of a recovery.
#include <signal.h>

#include "e2e/applying.h"
#include "e2e/running.h"

namespace cofferdam::test {
namespace {

// ssh-keygen wants its user to have a name, which the user of the tests has not.
class Signed : public Apply {
 protected:
  void SetUp() override {
    Apply::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    if (!exists("/usr/bin/ssh-keygen")) return skip_or_fail("ssh-keygen", "ssh-keygen is not installed");
    as_tester(
        "ssh-keygen -q -t ed25519 -N '' -f key; echo \"cofferdam@localhost $(cut -d' ' -f1,2 key.pub)\" > "
        "signers");
    if (world().ids()) {
      const std::string owner = std::to_string(world().ids()->uid);
      as_tester("chown " + owner + " key key.pub; cat /etc/passwd > passwd; echo 'tester:x:" + owner +
                ":12345::/nonexistent:/bin/false' >> passwd; chmod 644 passwd");
      mutable_world().replace_files({world().home() + "/passwd=/etc/passwd"});
    }
    world().write(world().config(), "[commit]\nsign_key = \"" + world().home() + "/key\"\n");
  }

  // In the home, as whoever runs the tests.
  bool try_as_tester(const std::string& script) const {
    SpawnOptions options;
    options.program = "/bin/sh";
    options.argv = {"sh", "-euc", "cd \"$1\"\n" + script, "sh", world().home()};
    options.env = {"PATH=/usr/bin:/bin", "HOME=" + world().home()};
    auto done = run_capture(options, "", {});
    return done && done->status.success();
  }
  void as_tester(const std::string& script) const { EXPECT_TRUE(try_as_tester(script)) << script; }
  bool is_good(const std::string& revision) const {
    return try_as_tester("git -c gpg.ssh.allowedSignersFile=" + world().home() +
                         "/signers --git-dir=../repo/.git verify-commit " + revision);
  }
  std::vector<std::string> configured(std::vector<std::string> args) const {
    args.insert(args.end(), {"--config", world().config()});
    return args;
  }
};

// On the host, of what was verified; git says that they are good.
TEST_P(Signed, CommitsAreGoodToGit) {
  attempt("echo one > one.txt", "unsigned");
  EXPECT_FALSE(is_good(commit));  // the control
  RunOutcome run =
      run_script("echo two > two.txt", configured({"--attempt-id", "work", "--repo", world().repo()}));
  ASSERT_EQ(run.status.code, 0) << run.err;
  EXPECT_TRUE(is_good("cofferdam/work"));
  sh("echo mine > m.txt; git add -A; git commit -qm mine");
  EXPECT_FALSE(is_good("HEAD"));
  RunOutcome outcome = apply(configured({}));
  ASSERT_EQ(outcome.status.code, 0) << outcome.err << outcome.out;
  EXPECT_NE(outcome.out.find("(merge)"), std::string::npos) << outcome.out;
  EXPECT_TRUE(is_good("HEAD"));
  EXPECT_EQ(world().git({"fsck", "--strict"}), "");
}

TEST_P(Signed, AKeyThatDoesNotSignIsFoundBeforeAnythingIsStarted) {
  as_tester("mv key away; rm key.pub");
  const std::vector<std::string> args = {"run",          "--json",         "--agent", "command",
                                         "--attempt-id", "never",          "--repo",  world().repo(),
                                         "--config",     world().config(), "--",      "/bin/true"};
  RunOutcome refused = world().cofferdam(args);
  EXPECT_EQ(refused.status.code, 2) << refused.err;
  EXPECT_NE(refused.err.find("commit.sign_key"), std::string::npos) << refused.err;
  EXPECT_EQ(world().cofferdam({"show", "never"}).status.code, 2);
  as_tester("mv away key");
  EXPECT_EQ(world().cofferdam(args).status.code, 0);  // the control
}

// The key goes away while the attempt runs: the work is kept, and signed and published once the key is back.
TEST_P(Signed, AKeyThatGoesAwayDuringTheRunIsWaitedFor) {
  const std::string head = world().git({"rev-parse", "HEAD"});
  const std::string marker = "standstill-" + random_hex(8);
  Running run(world(), {"run", "--json", "--attempt-id", "work", "--config", world().config(), "--agent",
                        "command", "--repo", world().repo(), "--", "/bin/sh", "-c",
                        ": " + marker + "; echo ready; kill -STOP $$; echo new > n.txt"});
  Running::wait_for(world().state() + "/attempts/work/stdout", "ready");
  as_tester("mv key away; mv key.pub away.pub");
  const int shell = box_shell(marker);
  ASSERT_GT(shell, 0);
  ASSERT_EQ(::kill(shell, SIGCONT), 0);
  RunOutcome outcome = run.finish();
  ASSERT_TRUE(outcome.result.has_value()) << outcome.err;
  EXPECT_EQ(outcome.status.code, 1);
  EXPECT_EQ(outcome.result->publication.state, "failed");
  const std::string& reason = outcome.result->publication.reason;
  EXPECT_NE(reason.find("commit.sign_key"), std::string::npos) << reason;
  EXPECT_NE(reason.find("kept unsigned"), std::string::npos) << reason;
  EXPECT_NE(reason.find("cofferdam recover"), std::string::npos) << reason;
  EXPECT_NE(world().cofferdam({"diff", "work"}).out.find("+new"), std::string::npos);

  // The control: without the key nothing gets out.
  RunOutcome still = world().cofferdam(configured({"recover"}));
  EXPECT_NE(still.status.code, 0) << still.out;
  EXPECT_NE(still.err.find("cannot sign"), std::string::npos) << still.err;
  EXPECT_EQ(said("git for-each-ref refs/heads/cofferdam"), "");

  as_tester("mv away key; mv away.pub key.pub");
  RunOutcome recovered = world().cofferdam(configured({"recover"}));
  EXPECT_EQ(recovered.status.code, 0) << recovered.err;
  EXPECT_NE(recovered.out.find("published refs/heads/cofferdam/work"), std::string::npos) << recovered.out;
  EXPECT_TRUE(is_good("cofferdam/work"));
  EXPECT_FALSE(is_good(head)) << "the control";
  EXPECT_EQ(world().git({"rev-parse", "cofferdam/work^"}), head);
  EXPECT_EQ(world().git({"rev-parse", "cofferdam/work^{tree}"}), outcome.result->change.tree.value_or(""));
  EXPECT_EQ(said("git show cofferdam/work:n.txt"), "new");
  EXPECT_EQ(world().git({"fsck", "--strict"}), "");
}

COFFERDAM_FOR_BOTH_USERS(Signed);

}  // namespace
}  // namespace cofferdam::test
