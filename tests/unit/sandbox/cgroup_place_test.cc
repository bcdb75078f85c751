// Where control groups can be, from the kernel's texts and a folder that looks like a hierarchy.
#include "sandbox/native/cgroup_place.h"

#include <gtest/gtest.h>

#include "base/file.h"
#include "sandbox/native/cgroup.h"

namespace cofferdam::sandbox {
namespace {

constexpr const char* kHybrid =
    "30 25 0:26 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755\n"
    "31 30 0:27 / /sys/fs/cgroup/unified rw,relatime shared:4 - cgroup2 cgroup2 rw\n"
    "32 30 0:28 / /sys/fs/cgroup/cpu,cpuacct rw,relatime - cgroup cgroup rw,cpu,cpuacct\n"
    "33 30 0:29 /docker/abc /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n"
    "broken line\n";

TEST(CgroupMounts, AreRead) {
  const std::vector<CgroupMount> mounts = parse_cgroup_mounts(kHybrid);
  ASSERT_EQ(mounts.size(), 3U);
  EXPECT_EQ(mounts[0].version, 2);
  EXPECT_EQ(mounts[1].folder, "/sys/fs/cgroup/cpu,cpuacct");
  EXPECT_EQ(mounts[1].controllers, (std::vector<std::string>{"rw", "cpu", "cpuacct"}));
  EXPECT_EQ(mounts[2].root, "/docker/abc");
  EXPECT_TRUE(parse_cgroup_mounts("").empty());
}

TEST(CgroupMounts, SayWhereAGroupIs) {
  const std::vector<CgroupMount> mounts = parse_cgroup_mounts(kHybrid);
  const std::string text = "4:memory:/docker/abc/x\n3:cpu,cpuacct:/y:z\n1:name=systemd:/s\n0::/u\n";
  EXPECT_EQ(folder_of_group(text, mounts[0]), "/sys/fs/cgroup/unified/u");
  EXPECT_EQ(folder_of_group(text, mounts[1]), "/sys/fs/cgroup/cpu,cpuacct/y:z");
  EXPECT_EQ(folder_of_group(text, mounts[2]), "/sys/fs/cgroup/memory/x");
  EXPECT_EQ(folder_of_group("4:memory:/docker/abcd\n", mounts[2]), "") << "beside what is mounted";
  EXPECT_EQ(folder_of_group("4:memory:/docker/abc\n", mounts[2]), "/sys/fs/cgroup/memory");
  EXPECT_EQ(folder_of_group("", mounts[2]), "");
}

// A tree of plain files with the names of version 2.
class Unified : public ::testing::Test {
 protected:
  void SetUp() override {
    auto folder = TempDir::create("/tmp", "cofferdam-cgroup-");
    ASSERT_TRUE(folder) << folder.error().line();
    folder_.emplace(std::move(*folder));
    group("", "cpu memory pids", "1\n");
  }
  // With what the kernel has in each.
  void group(const std::string& path, const std::string& controllers, const std::string& processes) {
    const std::string at = root() + path;
    ASSERT_TRUE(make_dirs(at));
    ASSERT_TRUE(write_file_atomic(at + "/cgroup.controllers", controllers + "\n"));
    ASSERT_TRUE(write_file_atomic(at + "/cgroup.procs", processes));
    if (path.empty()) return;
    ASSERT_TRUE(write_file_atomic(at + "/cgroup.type", "domain\n"));
  }
  CgroupPlace find(uid_t user, const std::string& own) const {
    return find_cgroup_place(
        {"boxes", user, "1 2 0:1 / " + root() + " rw - cgroup2 cgroup2 rw\n", "0::" + own + "\n", 77});
  }
  const std::string& root() const { return folder_->path(); }

 private:
  std::optional<TempDir> folder_;
};

TEST_F(Unified, RootHasAPlaceBelowTheTop) {
  const CgroupPlace place = find(0, "/");
  ASSERT_TRUE(place.usable()) << place.why_not;
  EXPECT_EQ(place.version, 2);
  EXPECT_EQ(place.trees.at(0).folder, root() + "/boxes/0");
  EXPECT_EQ(place.own_levels, 2U);
  EXPECT_EQ(place.leaf, "");
}

TEST_F(Unified, AUserHasTheNearestGroupWithoutProcesses) {
  group("/user", "memory pids", "");
  group("/user/app", "memory pids", "");
  group("/user/app/shell", "memory pids", "76\n77\n");
  const CgroupPlace place = find(1000, "/user/app/shell");
  ASSERT_TRUE(place.usable()) << place.why_not;
  EXPECT_EQ(place.trees.at(0).folder, root() + "/user/app/boxes");
  EXPECT_EQ(place.own_levels, 1U);
  EXPECT_EQ(place.leaf, "");
}

TEST_F(Unified, AUserAloneInAGroupMovesIntoALeaf) {
  group("/scope", "memory pids", "77\n");
  const CgroupPlace place = find(1000, "/scope");
  ASSERT_TRUE(place.usable()) << place.why_not;
  EXPECT_EQ(place.trees.at(0).folder, root() + "/scope/boxes");
  EXPECT_EQ(place.leaf, root() + "/scope/supervisor");
  // Once it is there, the same place is found from the leaf.
  group("/scope", "memory pids", "");
  group("/scope/supervisor", "memory pids", "77\n");
  const CgroupPlace again = find(1000, "/scope/supervisor");
  ASSERT_TRUE(again.usable()) << again.why_not;
  EXPECT_EQ(again.trees.at(0).folder, place.trees.at(0).folder);
  EXPECT_EQ(again.leaf, "");
}

TEST_F(Unified, WithoutControllersOrRoomThereIsNone) {
  group("", "cpu", "1\n");
  group("/user", "cpu", "");
  group("/user/shell", "cpu", "77\n");
  EXPECT_FALSE(find(1000, "/user/shell").usable()) << "no controller";
  EXPECT_FALSE(find(0, "/user/shell").usable());
  group("/user", "memory pids", "5\n");
  group("/user/shell", "memory pids", "76\n77\n");
  const CgroupPlace busy = find(1000, "/user/shell");
  EXPECT_FALSE(busy.usable()) << "every group on the way has processes";
  EXPECT_NE(busy.why_not.find("memory and pids"), std::string::npos) << busy.why_not;
}

TEST(CgroupPlace, OfAHostWithoutGroups) {
  const CgroupPlace place = find_cgroup_place({"boxes", 0, "", "", 1});
  EXPECT_FALSE(place.usable());
  EXPECT_EQ(place.why_not, "no control groups are mounted on this host");
}

TEST(GroupBounds, AreTheProgramsAndTheFilesInMemory) {
  contract::Profile agent;
  agent.memory_bytes = 1000;
  agent.pids = 10;
  agent.scratch_bytes = 100;
  agent.work_bytes = 7;
  EXPECT_EQ(bounds_of(agent).memory_bytes, 1300U) << "nothing of the work tree can be written";
  agent.work = contract::Access::read_write;
  EXPECT_EQ(bounds_of(agent).memory_bytes, 1307U);
  agent.work_in_memory = false;
  EXPECT_EQ(bounds_of(agent).memory_bytes, 1300U);
  EXPECT_EQ(bounds_of(agent).pids, 12U);
  contract::Profile snapshot;
  snapshot.output = contract::Access::read_write;
  snapshot.work_bytes = 7;
  EXPECT_EQ(bounds_of(snapshot).memory_bytes, kOwnBoxBytes + 14);
  EXPECT_EQ(bounds_of(snapshot).pids, kOwnBoxPids + kPidsOfInit);
}

}  // namespace
}  // namespace cofferdam::sandbox
