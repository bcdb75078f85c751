// What a box is, seen from inside, and what makes it refuse to start.
#include <algorithm>

#include "base/text.h"
#include "kernel/fixture.h"

namespace cofferdam::test {
namespace {

class Facts : public Kernel {};

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = 0; (at = text.find(part, at)) != std::string::npos; ++at) ++found;
  return found;
}

TEST_P(Facts, EveryControlIsProven) {
  if (!ready()) return;
  // Without a control group, which cgroup_test.cc has.
  const std::string controls = driver("controls", {});
  EXPECT_EQ(count(controls, "OPEN "), 2U) << controls;
  EXPECT_EQ(count(controls, "OPEN memory "), 1U) << controls;
  EXPECT_EQ(count(controls, "OPEN cpu "), 1U) << controls;
  EXPECT_GE(count(controls, "enforced "), 22U) << controls;
}

TEST_P(Facts, EnvironmentIsTheProfilesAlone) {
  if (!ready()) return;
  EXPECT_EQ(in_box({"environment"}), "HOME=/home/agent\nPATH=/usr/bin:/bin\nLC_ALL=C.UTF-8\nEMPTY=\nworks\n");
}

TEST_P(Facts, OnlyInitAndTheProgramAreSeen) {
  if (!ready()) return;
  EXPECT_EQ(in_box({"list-processes"}), "process box-probe\nprocess cofferdam-init\nworks\n");
  EXPECT_GT(count(outside({"list-processes"}), "process "), 2U) << "the control";
}

TEST_P(Facts, OnlyStandardDescriptors) {
  if (!ready()) return;
  const std::string names = in_box({"list", "/proc/self/fd"});
  EXPECT_EQ(count(names, "name "), 6U) << "., .., 0, 1, 2 and the listing's own: " << names;
}

TEST_P(Facts, MountTableShowsNoPathOfTheHost) {
  if (!ready()) return;
  for (const char* table : {"/proc/self/mountinfo", "/proc/self/mounts", "/proc/1/mountinfo"}) {
    const std::string mounts = in_box({"cat", table});
    ASSERT_NE(mounts.find(" /workspace "), std::string::npos) << mounts;
    for (const std::string& path :
         {root(), agent_dir(), std::string("agents-of-the-host"), std::string("cofferdam-kernel-"),
          std::string("/host"), std::string("/work/tree"), std::string(COFFERDAM_BUILD_DIR)}) {
      EXPECT_EQ(mounts.find(path), std::string::npos) << table << " shows " << path << "\n" << mounts;
    }
  }
  const std::string control = outside({"--own", "bind-and-print", agent_dir(), "/mnt"});
  EXPECT_NE(control.find("agents-of-the-host"), std::string::npos) << "the control: a bind does show it";
}

// No signal to PID 1 does anything: it goes on, and reports the program's end as it was.
TEST_P(Facts, SignalsToInitAreIgnored) {
  if (!ready()) return;
  const std::string said = in_box({"signal-init"});
  EXPECT_EQ(said.rfind("sent 62, init is ", 0), 0U) << said;
  EXPECT_EQ(said.find("init is T"), std::string::npos) << "it was stopped";
  EXPECT_NE(said.find("works\n"), std::string::npos) << said;
  EXPECT_EQ(in_box({"kill-child"}), "works\n") << "the control";
}

// Not denied, and documented: a program can be executed from memory, which the box bounds like any other.
TEST_P(Facts, MemfdExecutionIsAllowed) {
  if (!ready()) return;
  EXPECT_EQ(in_box({"memfd-exec"}), "works\n");
}

// Whatever the agent leaves in the work tree, the box that brings it home starts.
TEST_P(Facts, WhatAnAgentLeavesDoesNotStopTheSnapshotBox) {
  if (!ready()) return;
  const std::string probe_file = "/workspace/.cofferdam-probe";  // what the probes of init try to make
  for (const Args& act : {Args{"nothing"},
                          {"fill", "/workspace"},
                          {"chmod", "/workspace", "0555"},
                          {"chmod", "/workspace", "07777"},
                          {"leave", probe_file, "file"},
                          {"leave", probe_file, "folder"},
                          {"leave", probe_file, "fifo"},
                          {"leave", probe_file, "link"}}) {
    EXPECT_EQ(driver("after", act), "agent: works\nsnapshot: works\n") << join(act, " ");
  }
}

// A required control that is not proven: here the storage is larger than the profile says.
TEST_P(Facts, AnUnprovenControlRefuses) {
  if (!ready()) return;
  for (const char* what : {"bytes", "inodes"}) {
    const std::string refusal = driver("refuse", {what});
    EXPECT_EQ(refusal.rfind("unsupported-host: ", 0), 0U) << refusal;
    EXPECT_NE(refusal.find("storage-bound"), std::string::npos) << refusal;
  }
  EXPECT_EQ(driver("refuse", {"nothing"}), "went\n") << "the control";
}

// Two boxes at the same time, in different storages, know nothing of each other. A sibling in the same
// storage shares the work tree, and nothing else.
TEST_P(Facts, TwoBoxesAtOnce) {
  if (!ready()) return;
  const std::string name = "trace-" + random_hex(6);
  const std::string seen = driver("pair", {name});
  EXPECT_EQ(seen.rfind("holding\n", 0), 0U) << seen;
  for (const char* who : {"other", "sibling"}) {
    const std::string prefix = std::string(who) + ": ";
    EXPECT_EQ(count(seen, prefix + "list-processes: process "), 2U) << seen;
    EXPECT_EQ(count(seen, prefix + "list /tmp: name "), 2U) << "nothing but . and ..: " << seen;
    EXPECT_NE(seen.find(prefix + "connect-abstract " + name + ": ECONNREFUSED"), std::string::npos) << seen;
  }
  EXPECT_EQ(seen.find("other: list /workspace: name " + name), std::string::npos) << seen;
  EXPECT_NE(seen.find("sibling: list /workspace: name " + name), std::string::npos)
      << "the control: " << seen;
}

COFFERDAM_FOR_BOTH_USERS(Facts);

}  // namespace
}  // namespace cofferdam::test
