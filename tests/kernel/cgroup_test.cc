// Control groups of boxes on this kernel: what is in force, what stops, what is left.
#include <fcntl.h>

#include <algorithm>

#include "base/text.h"
#include "kernel/fixture.h"
#include "sandbox/native/cgroup_files.h"
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

// A group of the unified hierarchy without controllers, which is there beside version 1 as well.
class UnifiedGroup : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!running_as_root()) return skip_or_fail("root", "only root makes a group where it likes");
    auto mountinfo = read_file("/proc/self/mountinfo", 1U << 20U);
    ASSERT_TRUE(mountinfo) << mountinfo.error().line();
    for (const sandbox::CgroupMount& mount : sandbox::parse_cgroup_mounts(*mountinfo)) {
      if (mount.version == 2) folder_ = mount.folder + "/" + name_;
    }
    if (folder_.empty()) return skip_or_fail("cgroup2", "control groups of version 2 are not mounted");
    ASSERT_TRUE(make_new_dir(folder_, 0755));
  }
  void TearDown() override {
    if (!is_directory(folder_)) return;
    EXPECT_TRUE(sandbox::remove_group(folder_, std::chrono::seconds(30)));
  }

  // Whether a child is in the group, as it says itself.
  bool holds_child(int group_fd, const std::vector<int>& join_fds) const {
    SpawnOptions options;
    options.program = "/bin/cat";
    options.argv = {"cat", "/proc/self/cgroup"};
    options.group_fd = group_fd;
    options.join_fds = join_fds;
    auto captured = run_capture(options, "", {});
    EXPECT_TRUE(captured && captured->status.success())
        << (captured ? captured->err : captured.error().line());
    return captured && captured->out.find("/" + name_ + "\n") != std::string::npos;
  }
  std::string name_ = "cofferdam-kernel-" + random_hex(4);
  std::string folder_;
};

TEST_F(UnifiedGroup, AChildIsMadeInItOrGoesThereWhereThatCannotBe) {
  if (IsSkipped() || HasFatalFailure()) return;
  auto group = open_file(folder_, O_RDONLY | O_DIRECTORY);
  auto entry = open_file(folder_ + "/cgroup.procs", O_WRONLY);
  auto no_group = open_file("/", O_RDONLY | O_DIRECTORY);
  auto no_entry = open_file("/dev/full", O_WRONLY);
  ASSERT_TRUE(group && entry && no_group && no_entry);
  EXPECT_FALSE(holds_child(-1, {}));
  EXPECT_TRUE(holds_child(-1, {entry->get()}));
  EXPECT_TRUE(holds_child(no_group->get(), {entry->get()}));
  // A child that wrote to this entry would not start: it has been made in the group.
  EXPECT_TRUE(holds_child(group->get(), {no_entry->get()}));
}

}  // namespace
}  // namespace cofferdam::test
