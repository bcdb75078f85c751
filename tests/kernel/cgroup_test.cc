// Control groups of boxes on this kernel: what is in force, what stops, what is left.
#include <algorithm>

#include "base/text.h"
#include "kernel/fixture.h"
#include "sandbox/native/cgroup_place.h"

namespace cofferdam::test {
namespace {

// The tests make groups in a subtree of their own name, and it is gone when they are.
class Groups : public Kernel {
 protected:
  void SetUp() override {
    Kernel::SetUp();
    if (!ready() || IsSkipped() || HasFatalFailure()) return;
    if (!running_as_root()) {
      skip_or_fail("root", "control groups are handed over by root");
      return;
    }
    name_ = "cofferdam-kernel-" + random_hex(4);
    if (ids().has_value()) as_root("hand-over");
    can_ = !HasFatalFailure() && !IsSkipped();
  }
  void TearDown() override {
    if (!can_) return;
    if (ids().has_value()) as_root("take-back");
    EXPECT_EQ(folders(), std::vector<std::string>{}) << "what is left of the subtree";
  }
  bool can() const { return can_; }

  std::string with_groups(const std::string& scenario, const Args& args) const {
    SpawnOptions options = driver_options(scenario, args);
    options.env.push_back("COFFERDAM_TEST_CGROUP=" + name_);
    auto captured = run_capture(options, "", {});
    if (!captured) {
      ADD_FAILURE() << captured.error().line();
      return {};
    }
    EXPECT_TRUE(captured->status.success()) << scenario << ": " << captured->err;
    return captured->out;
  }

  // Every folder of the subtree, in every hierarchy.
  std::vector<std::string> folders() const {
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
  void as_root(const std::string& scenario) const {
    SpawnOptions options = driver_options(scenario, {name_, std::to_string(ids()->uid)});
    options.run_as.reset();
    auto captured = run_capture(options, "", {});
    ASSERT_TRUE(captured) << captured.error().line();
    ASSERT_TRUE(captured->status.success()) << captured->err;
  }
  std::string name_;
  bool can_ = false;
};

std::string line_of(const std::string& text, const std::string& control) {
  for (const std::string& line : split(text, '\n')) {
    if (line.find(" " + control + " ") != std::string::npos) return line;
  }
  return {};
}

TEST_P(Groups, AreProvenFromOutside) {
  if (!can()) return;
  const std::string with = with_groups("controls", {});
  // The host's /usr is never pinned.
  EXPECT_EQ(with.find("OPEN"), with.find("OPEN pinned-root")) << with;
  EXPECT_EQ(with.find("OPEN"), with.rfind("OPEN")) << with;
  const std::string without = driver("controls", {});
  for (const char* control : {"memory", "pids", "cpu"}) {
    EXPECT_TRUE(starts_with(line_of(with, control), "enforced ")) << line_of(with, control);
    EXPECT_NE(line_of(with, control).find("outside probe: cgroup v"), std::string::npos)
        << line_of(with, control);
  }
  EXPECT_TRUE(starts_with(line_of(without, "memory"), "OPEN ")) << line_of(without, "memory");
  EXPECT_TRUE(starts_with(line_of(without, "cpu"), "OPEN ")) << line_of(without, "cpu");
  EXPECT_NE(line_of(without, "pids").find("enforced pids outside probe: RLIMIT_NPROC"), std::string::npos)
      << line_of(without, "pids");
}

TEST_P(Groups, AreStoppedBeforeTheyAreKilled) {
  if (!can()) return;
  EXPECT_EQ(with_groups("hopper", {}),
            "hopping\nfree: hops\nfreeze: in time\nfrozen: stays\nthawed: hops\nkilled: 0 left\n"
            "group: removed\n");
}

TEST_P(Groups, OfFiftyBoxesLeaveNothingBehind) {
  if (!can()) return;
  const std::vector<std::string> before = folders();
  EXPECT_NE(with_groups("sequence", {"50"}).find("children 0\n"), std::string::npos);
  EXPECT_EQ(folders(), before);
}

COFFERDAM_FOR_BOTH_USERS(Groups);

}  // namespace
}  // namespace cofferdam::test
