// What a box is, seen from inside, and what makes it refuse to start.
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>

#include "base/fd.h"
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
  EXPECT_EQ(count(controls, "OPEN "), 3U) << controls;
  EXPECT_EQ(count(controls, "OPEN pinned-root "), 1U) << controls;
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
  // Where Landlock has a scope for signals (ABI 6), they cannot even be sent.
  const bool scoped = driver("controls", {}).find("signals and abstract sockets") != std::string::npos;
  EXPECT_EQ(said.rfind(scoped ? "sent 0, init is " : "sent 62, init is ", 0), 0U) << said;
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

// A file of the host that only a group of the caller's may read, and a socket that only it may connect to:
// neither is in a box, whatever groups the box's user still has.
TEST_P(Facts, AGroupOfTheCallersReachesNothing) {
  if (!ready()) return;
  if (!running_as_root()) return skip_or_fail("root", "only root can give a process further groups");
  constexpr gid_t kGroup = 54321;
  const std::string secret = root() + "/of-the-group";
  ASSERT_TRUE(write_file_atomic(secret, "of the group\n", 0640));
  ASSERT_EQ(::chown(secret.c_str(), 0, kGroup), 0);
  ASSERT_EQ(::chmod(secret.c_str(), 0640), 0);
  const std::string path = root() + "/socket-of-the-group";
  UniqueFd listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  ASSERT_EQ(::bind(listener.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  ASSERT_EQ(::listen(listener.get(), 4), 0);
  ASSERT_EQ(::chown(path.c_str(), 0, kGroup), 0);
  ASSERT_EQ(::chmod(path.c_str(), 0660), 0);
  const Args with_group = {"/usr/bin/setpriv", "--groups", std::to_string(kGroup)};
  for (const auto& [act, control] :
       {std::pair{Args{"cat", secret}, "of the group\nworks\n"}, {Args{"connect-path", path}, "works\n"}}) {
    EXPECT_EQ(driver_through(with_group, "run", act), "ENOENT\n") << join(act, " ");
    EXPECT_EQ(probe_through(with_group, act), control) << "the control: with the group, and no box";
    if (ids().has_value()) {
      EXPECT_EQ(outside(act), "EACCES\n") << "nor without the group";
    }
  }
}

// The launcher's file, and the program's own, are not the box's to write to (CVE-2019-5736).
TEST_P(Facts, NoProgramThatRunsCanBeWritten) {
  if (!ready()) return;
  EXPECT_EQ(in_box({"open-write", "/proc/1/exe"}), "EACCES\n");
  const std::string own = in_box({"open-write", "/proc/self/exe"});
  EXPECT_TRUE(own == "EROFS\n" || own == "ETXTBSY\n") << own;
  EXPECT_EQ(in_box({"open-write", "/dev/null"}), "works\n") << "the control";
}

// Landlock's own: the node and its mount let everybody write.
TEST_P(Facts, DevicesForReadingCannotBeWritten) {
  if (!ready()) return;
  EXPECT_EQ(in_box({"open-write", "/dev/urandom"}), "EACCES\n");
  EXPECT_EQ(in_box({"open-read", "/dev/urandom"}), "works\n");
  EXPECT_EQ(outside({"open-write", "/dev/urandom"}), "works\n") << "the control";
}

COFFERDAM_FOR_BOTH_USERS(Facts);

}  // namespace
}  // namespace cofferdam::test
