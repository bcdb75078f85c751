// The work tree: a cached tree with a bounded layer above it, the tree itself in a read-only phase, and what
// of them the host and later attempts see.
#include <unistd.h>

#include <chrono>

#include "base/text.h"
#include "e2e/fixture.h"

namespace cofferdam::test {
namespace {

class WorkTree : public EndToEnd {
 protected:
  // What a writing phase gets here: root has a disk, the others have memory.
  static std::string written_tree() { return GetParam() == User::root ? "overlay" : tree_in_memory(); }
  // The folders of the cached trees in the vault.
  std::vector<std::string> trees() const {
    std::vector<std::string> found;
    auto repositories = list_dir(world().state() + "/vault");
    if (!repositories) return found;
    for (const std::string& repository : *repositories) {
      std::string parent = world().state();
      parent.append("/vault/").append(repository).append("/tree");
      auto names = list_dir(parent);
      if (!names) continue;
      for (const std::string& name : *names) found.push_back(parent + "/" + name);
    }
    return found;
  }
};

TEST_P(WorkTree, IsAnOverlayOverACachedTreeThatNobodyChanges) {
  world().commit({{"dir/one.txt", "one\n"}, {"dir/two.txt", "two\n"}, {"gone/deep/x", "x\n"}}, "folders");
  RunOutcome first = run_script("true");
  ASSERT_EQ(first.status.code, 0) << first.err;
  EXPECT_EQ(first.result->storage->tree, written_tree());
  EXPECT_EQ(first.result->storage->tree_reason.empty(), written_tree() == "overlay");
  ASSERT_EQ(trees().size(), 1U);
  const std::string before = world().fingerprint(trees()[0] + "/tree");

  RunOutcome second = run_script(
      "set -e; echo more >> dir/one.txt; rm -rf gone; mkdir gone; test -z \"$(ls -A gone)\"; echo new > "
      "gone/y; "
      "mv dir/two.txt dir/three.txt; chmod 755 README.md");
  ASSERT_EQ(second.status.code, 0) << second.err;
  EXPECT_EQ(second.result->storage->tree, written_tree());
  ASSERT_EQ(trees().size(), 1U) << "the same head has one tree";
  EXPECT_EQ(world().fingerprint(trees()[0] + "/tree"), before);
  const std::string commit = second.result->change.commit.value_or("");
  EXPECT_EQ(world().git({"diff", "--name-status", "--no-renames", "HEAD", commit}),
            "M\tREADME.md\nM\tdir/one.txt\nA\tdir/three.txt\nD\tdir/two.txt\nD\tgone/deep/x\nA\tgone/y");
}

// git compares size, times, inode number and ids; what does not agree it opens and hashes. diff-files names
// such a file without looking into it.
TEST_P(WorkTree, GitInTheBoxOpensNoTrackedFile) {
  RunOutcome outcome = run_script(
      "git diff-files --name-only > stale.txt; cp -p src/a.txt copy; mv copy src/a.txt; "
      "git diff-files --name-only > touched.txt");
  ASSERT_EQ(outcome.status.code, 0) << outcome.err;
  EXPECT_EQ(outcome.result->storage->tree, written_tree());
  const std::string commit = outcome.result->change.commit.value_or("");
  EXPECT_EQ(world().git({"show", commit + ":stale.txt"}), "");
  EXPECT_EQ(world().git({"show", commit + ":touched.txt"}), "src/a.txt") << "the control";
}

TEST_P(WorkTree, ReadOnlyPhaseGetsTheTreeItself) {
  RunOutcome outcome = world().cofferdam({"review", "--json", "--agent", "command", "--", "/bin/sh", "-c",
                                          "git diff-files --name-only; git status --porcelain; if echo x 2> "
                                          "/dev/null > new; then echo written; fi; "
                                          "cat src/a.txt; ls -A; ls .git/objects"});
  ASSERT_TRUE(outcome.result.has_value()) << outcome.err;
  EXPECT_EQ(outcome.result->outcome, contract::Outcome::completed) << outcome.out;
  EXPECT_EQ(outcome.result->storage->tree, "read-only");
  EXPECT_EQ(printed(outcome), world().git({"show", "HEAD:src/a.txt"}) + "\n.git\n" +
                                  world().git({"ls-tree", "--name-only", "HEAD"}) + "\ninfo\npack\n");
}

TEST_P(WorkTree, BoxSeesNoPathOfTheHost) {
  RunOutcome outcome = run_script("cat /proc/self/mountinfo");
  ASSERT_EQ(outcome.status.code, 0) << outcome.err;
  const std::string mounts = printed(outcome);
  EXPECT_NE(mounts.find("lowerdir=lower"), std::string::npos) << mounts;
  EXPECT_EQ(mounts.find("vault"), std::string::npos) << mounts;
  EXPECT_EQ(mounts.find(world().root()), std::string::npos) << mounts;
}

// A tree goes with the base packs: least recently used first, and never one that is in use.
TEST_P(WorkTree, GoesWhenTheCacheIsOverItsBound) {
  RunOutcome outcome = run_script("true", {"--attempt-id", "kept"});
  ASSERT_EQ(outcome.status.code, 0) << outcome.err;
  ASSERT_EQ(trees().size(), 1U) << "the control: it is kept for the next attempt";
  world().write(world().config(), "[cache]\nmax_bytes = 0\n");
  ASSERT_EQ(world().cofferdam({"prune", "--config", world().config()}).status.code, 0);
  EXPECT_EQ(trees().size(), 0U);
  RunOutcome again = run_script("cat src/a.txt", {"--attempt-id", "again"});
  ASSERT_EQ(again.status.code, 0) << again.err;
  EXPECT_EQ(trees().size(), 1U);
}

// What an attempt gets where an overlay does not do, and for who wants it.
TEST_P(WorkTree, AFullCheckoutGivesTheSameChange) {
  world().commit({{"dir/one.txt", "one\n"}, {"gone/deep/x", "x\n"}}, "folders");
  const std::string script =
      "git diff-files --name-only; echo more >> dir/one.txt; rm -rf gone; mkdir gone; echo new > gone/y";
  RunOutcome above = run_script(script, {"--attempt-id", "above"});
  world().write(world().config(), "[workspace]\ntree = \"checkout\"\n");
  RunOutcome full = run_script(script, {"--attempt-id", "full", "--config", world().config()});
  ASSERT_EQ(above.status.code, 0) << above.err;
  ASSERT_EQ(full.status.code, 0) << full.err;
  EXPECT_EQ(above.result->storage->tree, written_tree());
  EXPECT_EQ(full.result->storage->tree, "checkout");
  EXPECT_NE(full.result->storage->tree_reason.find("workspace.tree"), std::string::npos);
  EXPECT_EQ(above.result->change.tree, full.result->change.tree);
  EXPECT_EQ(above.result->change.file_count, 3U);
  EXPECT_EQ(printed(above), "");
  EXPECT_EQ(printed(full), "");
}

// Bytes and inodes have a bound on either kind of storage, and the result says which of the two was met. For
// root it is a disk of the attempt's own, of which the host keeps nothing: no mount, no loop device, no file.
TEST_P(WorkTree, StorageIsBoundedWhateverItIs) {
  const bool root = GetParam() == User::root;
  for (const std::string kind : {"auto", "memory"}) {
    SCOPED_TRACE(kind);
    world().write(world().config(), "[workspace]\nstorage = \"" + kind +
                                        "\"\n[limits]\nwork_bytes = 33554432\nwork_inodes = 1000\n");
    const std::vector<std::string> more = {"--config", world().config()};
    RunOutcome fits = run_script("head -c 20000000 /dev/zero > big && rm big && df -i . | tail -n 1", more);
    EXPECT_EQ(fits.status.code, 0) << "the control: " << fits.err;
    const bool disk = root && kind == "auto";
    EXPECT_EQ(fits.result->storage->kind, disk ? "image" : "tmpfs");
    EXPECT_EQ(fits.result->storage->tree, disk ? "overlay" : tree_in_memory());
    RunOutcome bytes = run_script("head -c 40000000 /dev/zero > big", more);
    EXPECT_EQ(bytes.result->cause.control, "work-bytes") << bytes.err;
    RunOutcome inodes = run_script("for i in $(seq 2000); do : > f$i || exit 1; done", more);
    EXPECT_EQ(inodes.result->cause.control, "work-inodes") << inodes.err;
    EXPECT_GT(inodes.result->resources.work_inodes, 900U);
    EXPECT_LE(inodes.result->resources.work_inodes, 1000U);
  }
  // The kernel gives a loop device back behind the last mount, a moment after the keeper's end.
  const std::string loops =
      "grep -l '" + world().root() + "' /sys/block/loop*/loop/backing_file 2> /dev/null";
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!outside(loops).out.empty() && std::chrono::steady_clock::now() < end) ::usleep(20'000);
  EXPECT_EQ(outside(loops).out, "");
}

// C24: what could take the host's last bytes is refused before anything is taken.
TEST_P(WorkTree, IsRefusedWhenTheHostHasNoRoomForIt) {
  world().write(world().config(), "[limits]\nwork_bytes = 1099511627776\n");  // 1 TiB
  RunOutcome outcome = run_script("true", {"--config", world().config(), "--attempt-id", "huge"});
  EXPECT_EQ(outcome.result->outcome, contract::Outcome::refused) << outcome.err;
  EXPECT_EQ(outcome.result->cause.control, "workspace");
  EXPECT_NE(outcome.result->cause.detail.find("lower limits.work_bytes"), std::string::npos)
      << outcome.result->cause.detail;
  EXPECT_EQ(run_script("true").status.code, 0) << "the control";
}

COFFERDAM_FOR_BOTH_USERS(WorkTree);

// Slots are made by root and used by somebody who is not: in a mount namespace of the test's own, so that the
// host sees none of their mounts.
TEST(Slots, AreExclusiveBoundedAndEmptied) {
  if (!running_as_root()) return skip_or_fail("root", "slots are made by root");
  auto made = World::create(User::rootless);
  ASSERT_TRUE(made) << made.error().line();
  const World& world = *made;
  world.commit({{"a.txt", "a\n"}, {"dir/b.txt", "b\n"}}, "first");
  const std::string dir = world.root() + "/slots";
  world.write(world.config(), "[workspace]\nstorage = \"slot\"\nslots_dir = \"" + dir +
                                  "\"\n[limits]\nwork_bytes = 33554432\nwork_inodes = 1000\n");
  world.write(world.home() + "/memory.toml",
              "[workspace]\nstorage = \"memory\"\nslots_dir = \"" + dir + "\"\n");
  // $1 programs, $2 folder of slots, $3 repository, $4 configuration, $5 home, $6 state, $7 name of control
  // groups
  const std::string script = R"sh(
setup() { "$1/cofferdam" host-setup --user 12345 --cgroup "$groups" --dir "$2" --slots 1 --bytes 33554432 --inodes 1000; }
as_user() {
  setpriv --reuid 12345 --regid 12345 --clear-groups env -i PATH=/usr/bin:/bin HOME="$home" \
    COFFERDAM_STATE_DIR="$state" "$programs/cofferdam" run --json --config "$config" --repo "$repo" \
    --agent command "$@"
}
doctor() {
  setpriv --reuid 12345 --regid 12345 --clear-groups env -i PATH=/usr/bin:/bin HOME="$home" \
    COFFERDAM_STATE_DIR="$state" "$programs/cofferdam" doctor --config "$1" |
    sed -n 's/^slots  */doctor slots /p; s/^host-memory .*available; \([^:]*\):.*/doctor memory \1/p'
}
programs=$1 slots=$2 repo=$3 config=$4 home=$5 state=$6 groups=$7
setup "$1" "$2"
setup "$1" "$2"
doctor "$config"
doctor "$home/memory.toml"
as_user --attempt-id first -- /bin/sh -c 'mkdir -p deep/er && echo x > deep/er/x && chmod 000 deep; rm -rf dir'
as_user --attempt-id second -- /bin/sh -c 'ls -A; echo y > y'
exec 9< "$2/12345/1.lock"
flock -x 9
doctor "$config"
as_user --attempt-id third -- /bin/sh -c true
flock -u 9
as_user --attempt-id fourth -- /bin/sh -c 'head -c 40000000 /dev/zero > big'
"$1/cofferdam" host-setup --user 12345 --cgroup "$groups" --dir "$2" --remove
ls -A "$2"
)sh";
  SpawnOptions options;
  options.program = "/usr/bin/unshare";
  options.argv = {"unshare",    "--mount",     "--propagation",
                  "private",    "/bin/sh",     "-c",
                  script,       "sh",          world.programs(),
                  dir,          world.repo(),  world.config(),
                  world.home(), world.state(), "cofferdam-slots-" + random_hex(4)};
  options.env = {"PATH=/usr/sbin:/usr/bin:/sbin:/bin"};
  auto done = run_capture(options, "", CaptureLimits{});
  ASSERT_TRUE(done) << done.error().line();
  std::vector<contract::ResultRecord> results;
  std::vector<std::string> other;
  std::vector<std::string> doctor;
  int handed_over = 0;
  for (const std::string& line : split(trim(done->out), '\n')) {
    if (auto result = contract::decode_result(line)) {
      results.push_back(*result);
    } else if (starts_with(line, "doctor ")) {
      doctor.push_back(line);
    } else if (starts_with(line, "control groups ")) {
      ++handed_over;
    } else {
      other.push_back(line);
    }
  }
  EXPECT_EQ(handed_over, 2) << done->out;
  EXPECT_EQ(other, (std::vector<std::string>{"1 slots made, 1 of 33554432 bytes and 1000 inodes ready",
                                             "0 slots made, 1 of 33554432 bytes and 1000 inodes ready",
                                             "1 slots removed"}))
      << done->err;
  // Of memory the work tree is counted only where memory holds it.
  ASSERT_EQ(doctor.size(), 5U) << done->out;
  EXPECT_EQ(doctor[0], "doctor memory way out and scratch of one attempt");
  EXPECT_NE(doctor[1].find("1 of 1 free, 31 MiB each"), std::string::npos) << doctor[1];
  EXPECT_EQ(doctor[2], "doctor memory work tree, way out and scratch of one attempt");
  EXPECT_EQ(doctor[3], doctor[0]);
  EXPECT_NE(doctor[4].find("no capacity: all 1 slots of this user are in use"), std::string::npos)
      << doctor[4];
  ASSERT_EQ(results.size(), 4U) << done->out << done->err;
  EXPECT_EQ(results[0].storage->kind, "slot");
  EXPECT_EQ(results[0].storage->tree, "overlay");
  EXPECT_EQ(results[0].outcome, contract::Outcome::completed) << done->err;
  EXPECT_EQ(results[1].outcome, contract::Outcome::completed) << done->err;
  EXPECT_EQ(results[1].change.file_count, 1U) << "what the first had left is gone";
  EXPECT_EQ(results[2].outcome, contract::Outcome::refused) << "no capacity, never shared";
  EXPECT_NE(results[2].cause.detail.find("no capacity"), std::string::npos) << results[2].cause.detail;
  EXPECT_EQ(results[3].cause.control, "work-bytes") << "bounded, and free again";
}

}  // namespace
}  // namespace cofferdam::test
