// Memory and processes of an attempt, bounded by control groups, or said not to be.
#include <signal.h>

#include "base/text.h"
#include "e2e/running.h"
#include "sandbox/native/cgroup_place.h"

namespace cofferdam::test {
namespace {

using contract::Outcome;

// Memory that no process has mapped, which nobody sees who looks at processes: only the group counts it.
std::string take_memory(int mib) {
  return "python3 -c 'import os\nf = os.memfd_create(\"x\")\nfor i in range(" + std::to_string(mib) +
         "): os.write(f, bytes(1 << 20))\nprint(\"whole\", flush=True)'";
}

const contract::ControlFact* control_of(const RunOutcome& outcome, const std::string& name) {
  if (!outcome.result.has_value()) return nullptr;
  for (const contract::ControlFact& fact : outcome.result->controls) {
    if (fact.name == name) return &fact;
  }
  return nullptr;
}

// In a subtree of the test's own, which `host-setup` hands to the user who is not root.
class Bounds : public EndToEnd {
 protected:
  void SetUp() override {
    EndToEnd::SetUp();
    if (HasFatalFailure() || IsSkipped()) return;
    if (!running_as_root()) {
      skip_or_fail("root", "control groups are handed over by root");
      return;
    }
    name_ = "cofferdam-e2e-" + random_hex(4);
    if (user() == User::rootless) {
      RunOutcome handed = host_setup({});
      ASSERT_EQ(handed.status.code, 0) << handed.err;
      ASSERT_EQ(host_setup({}).status.code, 0) << "again, as after a boot";
    }
    given_ = groups();
    can_ = true;
  }
  void TearDown() override {
    if (can_) {
      EXPECT_EQ(groups(), given_) << "groups are left behind";
      if (user() == User::rootless) {
        EXPECT_EQ(host_setup({"--remove"}).status.code, 0);
      }
      EXPECT_EQ(groups(), std::vector<std::string>{});
    }
    EndToEnd::TearDown();
  }
  bool can() const { return can_; }

  void limits(const std::string& text) const {
    world().write(world().config(), "[deadlines]\ngrace = \"500ms\"\n[box]\ncgroup = \"" + name_ +
                                        "\"\n[limits]\nwork_bytes = 8388608\nscratch_bytes = 4194304\n" +
                                        text);
  }
  RunOutcome run(const std::string& id, const std::string& script) {
    return run_script(script, {"--config", world().config(), "--attempt-id", id});
  }
  // As root, whoever the test's user is.
  RunOutcome host_setup(const std::vector<std::string>& more) const {
    SpawnOptions options;
    options.program = std::string(COFFERDAM_BUILD_DIR) + "/cofferdam";
    options.argv = {"cofferdam", "host-setup", "--user", "12345", "--cgroup", name_};
    options.argv.insert(options.argv.end(), more.begin(), more.end());
    options.env = {"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/nonexistent"};
    RunOutcome outcome;
    auto done = run_capture(options, "", {});
    if (done) outcome = {done->status, done->out, done->err, std::nullopt};
    return outcome;
  }
  // Every group of the subtree, in every hierarchy.
  std::vector<std::string> groups() const {
    auto mountinfo = read_file("/proc/self/mountinfo", 1U << 20U);
    std::vector<std::string> found;
    for (const sandbox::CgroupMount& mount :
         sandbox::parse_cgroup_mounts(mountinfo ? *mountinfo : std::string())) {
      std::vector<std::string> level = {mount.folder + "/" + name_};
      while (!level.empty()) {
        const std::string folder = level.back();
        level.pop_back();
        if (!is_directory(folder)) continue;
        found.push_back(folder);
        auto names = list_dir(folder);
        for (const std::string& name : names ? *names : std::vector<std::string>{}) {
          level.push_back(folder + "/" + name);
        }
      }
    }
    return found;
  }

 private:
  std::string name_;
  std::vector<std::string> given_;
  bool can_ = false;
};

TEST_P(Bounds, MemoryIsAWallAndTheWorkIsKept) {
  if (!can()) return;
  limits("memory_bytes = 67108864\n");
  RunOutcome outcome = run("greedy", "echo kept > kept.txt; " + take_memory(256) + "; sleep 600");
  ASSERT_TRUE(outcome.result.has_value()) << outcome.err;
  EXPECT_EQ(outcome.result->outcome, Outcome::limit) << outcome.err;
  EXPECT_EQ(outcome.result->cause.control, "memory");
  EXPECT_NE(outcome.result->cause.detail.find("control group"), std::string::npos)
      << outcome.result->cause.detail;
  EXPECT_EQ(printed(outcome), "");
  EXPECT_GT(outcome.result->resources.peak_memory, 67108864U);
  EXPECT_LT(outcome.result->resources.peak_memory, 100U << 20U) << "the bound and the files, and no more";
  // The snapshot has memory of its own.
  EXPECT_TRUE(outcome.result->change.commit.has_value()) << outcome.result->publication.reason;
  ASSERT_EQ(outcome.result->change.files.size(), 1U);
  EXPECT_EQ(outcome.result->change.files[0].path, "kept.txt");
  const contract::ControlFact* memory = control_of(outcome, "memory");
  ASSERT_NE(memory, nullptr);
  EXPECT_TRUE(memory->required && memory->enforced) << memory->proof;
  limits("memory_bytes = 536870912\n");
  RunOutcome fine = run("modest", take_memory(256));
  ASSERT_TRUE(fine.result.has_value()) << fine.err;
  EXPECT_EQ(fine.result->outcome, Outcome::completed) << "the control: " << fine.err;
  EXPECT_EQ(printed(fine), "whole\n");
  EXPECT_GT(fine.result->resources.peak_memory, 256U << 20U);
}

TEST_P(Bounds, AForkBombMeetsTheBound) {
  if (!can()) return;
  limits("pids = 64\n");
  RunOutcome outcome = run("bomb", "echo kept > kept.txt; b() { b | b & }; b; exec sleep 600");
  ASSERT_TRUE(outcome.result.has_value()) << outcome.err;
  EXPECT_EQ(outcome.result->outcome, Outcome::limit) << outcome.err;
  EXPECT_EQ(outcome.result->cause.control, "pids");
  EXPECT_EQ(outcome.result->resources.peak_pids, 64U);
  EXPECT_TRUE(outcome.result->change.commit.has_value()) << outcome.result->publication.reason;
  EXPECT_EQ(run("few", "for i in 1 2 3 4 5 6 7 8; do sleep 0.1 & done; wait").result->outcome,
            Outcome::completed)
      << "the control";
}

// Nobody is there to remove them but whoever comes next.
TEST_P(Bounds, GroupsOfASupervisorThatWasKilledAreRemoved) {
  if (!can()) return;
  limits("");
  const std::vector<std::string> before = groups();
  Running running(world(), {"run", "--json", "--config", world().config(), "--agent", "command",
                            "--attempt-id", "orphan", "--", "/bin/sh", "-c", "echo ready; sleep 600"});
  Running::wait_for(world().state() + "/attempts/orphan/stdout", "ready");
  EXPECT_GT(groups().size(), before.size()) << "the control: the box has a group";
  running.child().signal(SIGKILL);
  running.finish();
  EXPECT_GT(groups().size(), before.size()) << "the control: nobody has removed it";
  EXPECT_EQ(world().cofferdam({"recover", "--config", world().config()}).status.code, 0);
  EXPECT_EQ(groups(), before);
}

COFFERDAM_FOR_BOTH_USERS(Bounds);

// Without anything that was handed over the attempt runs, and says what is not in force.
TEST(NoBounds, AreSaid) {
  auto made = World::create(User::rootless);
  ASSERT_TRUE(made) << made.error().line();
  const World& world = *made;
  world.commit({{"a.txt", "a\n"}}, "first");
  world.write(world.config(), "[box]\ncgroup = \"cofferdam-none-" + random_hex(4) + "\"\n");
  RunOutcome outcome = world.cofferdam({"run", "--json", "--repo", world.repo(), "--config", world.config(),
                                        "--agent", "command", "--", "/bin/sh", "-c", "true"});
  ASSERT_TRUE(outcome.result.has_value()) << outcome.err;
  EXPECT_EQ(outcome.result->outcome, Outcome::completed);
  const contract::ControlFact* memory = control_of(outcome, "memory");
  const contract::ControlFact* pids = control_of(outcome, "pids");
  ASSERT_TRUE(memory != nullptr && pids != nullptr);
  if (memory->enforced) {
    skip_or_fail("undelegated", "this user has control groups of its own: " + memory->proof);
    return;
  }
  EXPECT_FALSE(memory->required);
  EXPECT_NE(memory->proof.find("no control group"), std::string::npos) << memory->proof;
  EXPECT_TRUE(pids->required && pids->enforced) << pids->proof;
  const std::string doctor = world.cofferdam({"doctor", "--config", world.config()}).out;
  const std::vector<std::string> lines = split(doctor, '\n');
  EXPECT_TRUE(std::any_of(lines.begin(), lines.end(), [](const std::string& line) {
    return starts_with(line, "memory ") && line.find(" weaker ") != std::string::npos &&
           line.find("sudo cofferdam host-setup") != std::string::npos;
  })) << doctor;
  // Who asks for it is refused, and told what to do.
  world.write(world.config(), "[box]\ncgroup = \"cofferdam-none\"\n[controls]\nmemory = \"required\"\n");
  RunOutcome refused = world.cofferdam({"run", "--json", "--repo", world.repo(), "--config", world.config(),
                                        "--agent", "command", "--", "/bin/sh", "-c", "true"});
  ASSERT_TRUE(refused.result.has_value()) << refused.err;
  EXPECT_EQ(refused.result->outcome, Outcome::refused);
  EXPECT_EQ(refused.result->cause.control, "memory");
  EXPECT_NE(refused.result->cause.detail.find("sudo cofferdam host-setup"), std::string::npos)
      << refused.result->cause.detail;
}

}  // namespace
}  // namespace cofferdam::test
