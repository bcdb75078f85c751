// Properties of every plan, over every combination of what a profile can ask for.
#include "sandbox/native/plan_box.h"

#include <gtest/gtest.h>

#include <functional>
#include <set>

#include "sandbox/native/probe_root.h"

namespace cofferdam::sandbox {
namespace {

using contract::Access;
using contract::Profile;
using plan::Op;
using plan::OpCode;
using plan::Plan;

constexpr const char* kAgentDir = "/srv/agents/claude";

HostLayout fixed_layout() {
  return {{{"bin", "usr/bin"}, {"sbin", "usr/sbin"}, {"lib", ""}, {"lib64", "usr/lib64"}},
          {"alternatives", "ld.so.cache"},
          "TZif2"};
}

Profile base_profile() {
  Profile profile;
  profile.kind = "agent";
  profile.argv = {"/opt/agent/run"};
  profile.env = {"HOME=/home/agent"};
  profile.scratch_bytes = 1 << 20;
  profile.scratch_inodes = 100;
  profile.work_bytes = 2 << 20;
  profile.work_inodes = 200;
  profile.deadline = std::chrono::seconds(9);
  profile.grace = std::chrono::seconds(2);
  return profile;
}

HostLayout image_layout() {
  HostLayout layout{{{"bin", "usr/bin"}, {"lib", ""}}, {}, ""};
  layout.more = {{"etc/ssl", ""}, {"etc/rmt", "/usr/sbin/rmt"}, {"opt/java", ""}};
  layout.source = "/image";
  return layout;
}

// Calls `check` with every combination of the three accesses, with and without an agent.
void for_every_profile(const std::function<void(const Profile&, const Plan&)>& check) {
  for (Access work : {Access::none, Access::read_only, Access::read_write}) {
    for (Access metadata : {Access::none, Access::read_only, Access::read_write}) {
      for (Access output : {Access::none, Access::read_only, Access::read_write}) {
        for (const char* agent : {"", kAgentDir}) {
          Profile profile = base_profile();
          profile.work = work;
          profile.metadata = metadata;
          profile.output = output;
          profile.agent_dir = agent;
          SCOPED_TRACE("work " + std::to_string(static_cast<int>(work)) + ", metadata " +
                       std::to_string(static_cast<int>(metadata)) + ", output " +
                       std::to_string(static_cast<int>(output)) + ", agent '" + agent + "'");
          check(profile, plan_box(profile, fixed_layout(), std::string(8, '\0')));
        }
      }
    }
  }
}

const Op* op_at(const Plan& plan, const std::string& target) {
  const Op* found = nullptr;
  for (const Op& op : plan.ops) {
    if (op.b != target) continue;
    EXPECT_EQ(found, nullptr) << target << " is made twice";
    found = &op;
  }
  return found;
}

// A bind of `source`, writable or not as the access says; nothing at all for none.
void expect_bind(const Plan& plan, const std::string& target, const std::string& source, Access access) {
  const Op* op = op_at(plan, target);
  if (access == Access::none) {
    EXPECT_TRUE(op == nullptr || op->code == OpCode::dir) << target << " is not asked for";
    return;
  }
  ASSERT_NE(op, nullptr) << target;
  EXPECT_EQ(op->code, OpCode::bind);
  EXPECT_EQ(op->a, source);
  EXPECT_EQ(op->n1, access == Access::read_only ? 1U : 0U) << target;
}

TEST(PlanBox, StorageIsMountedExactlyAsTheProfileSays) {
  for_every_profile([](const Profile& profile, const Plan& plan) {
    expect_bind(plan, "/workspace", "/work/tree", profile.work);
    expect_bind(plan, "/workspace/.git", "/meta/git", profile.metadata);
    expect_bind(plan, "/out", "/out", profile.output);
    EXPECT_EQ(plan.expected.metadata, static_cast<std::uint8_t>(profile.metadata));
    EXPECT_EQ(plan.expected.output, static_cast<std::uint8_t>(profile.output));
    const bool empty = profile.work == Access::none && profile.metadata != Access::none;
    EXPECT_EQ(plan.expected.work, static_cast<std::uint8_t>(empty ? Access::read_only : profile.work));
    EXPECT_EQ(plan.expected.work_bytes, profile.work == Access::read_write ? profile.work_bytes : 0U);
    EXPECT_EQ(plan.expected.work_inodes, profile.work == Access::read_write ? profile.work_inodes : 0U);
  });
}

// The two shapes that an agent's box can have: attempt/run.cc gives no other.
TEST(PlanBox, AgentBoxes) {
  for (Access work : {Access::read_only, Access::read_write}) {
    Profile profile = base_profile();
    profile.work = work;
    profile.metadata = Access::read_only;
    profile.agent_dir = kAgentDir;
    Plan plan = plan_box(profile, fixed_layout(), "");
    expect_bind(plan, "/workspace", "/work/tree", work);
    expect_bind(plan, "/workspace/.git", "/meta/git", Access::read_only);
    EXPECT_EQ(op_at(plan, "/out"), nullptr) << "the way out is not in an agent's box";
    EXPECT_EQ(plan.expected.output, 0U);
  }
}

TEST(PlanBox, OnlyStorageIsEverWritable) {
  const std::set<std::string> storage = {"/work/tree", "/meta/git", "/out"};
  for_every_profile([&](const Profile&, const Plan& plan) {
    for (const Op& op : plan.ops) {
      if (op.code != OpCode::bind || storage.count(op.a) != 0) continue;
      EXPECT_EQ(op.n1, 1U) << op.a << " is bound writable";
    }
  });
}

TEST(PlanBox, NoOtherSourceThanTheFixedOnes) {
  std::set<std::string> binds = {"/host/usr", "/work/tree", "/meta/git", "/out"};
  for (const RootEntry& entry : fixed_layout().root_entries) {
    if (entry.link_text.empty()) binds.insert("/host/" + entry.name);
  }
  for (const std::string& name : fixed_layout().etc_entries) binds.insert("/host/etc/" + name);
  const std::set<std::string> devices = {"null", "zero", "full", "random", "urandom", "tty"};
  for_every_profile([&](const Profile& profile, const Plan& plan) {
    for (const Op& op : plan.ops) {
      if (op.code == OpCode::bind) {
        EXPECT_EQ(binds.count(op.a), 1U) << op.a;
      }
      if (op.code == OpCode::overlay) {
        EXPECT_EQ(op.a, "/host" + profile.agent_dir);
      }
      if (op.code != OpCode::device) continue;
      ASSERT_EQ(op.a.rfind("/host/dev/", 0), 0U) << op.a;
      EXPECT_EQ(devices.count(op.a.substr(10)), 1U) << op.a;
      EXPECT_NE(op.n1, 0U) << "the device number is compared";
    }
    const Op* agent = op_at(plan, "/opt/agent");
    EXPECT_EQ(agent != nullptr, !profile.agent_dir.empty());
    if (agent != nullptr) {
      EXPECT_EQ(agent->code, OpCode::overlay) << "a bind would show the host's path";
    }
  });
}

TEST(PlanBox, EveryTmpfsIsBounded) {
  for_every_profile([](const Profile& profile, const Plan& plan) {
    std::set<std::string> seen;
    for (const Op& op : plan.ops) {
      if (op.code != OpCode::tmpfs) continue;
      seen.insert(op.b);
      EXPECT_EQ(op.n1, profile.scratch_bytes) << op.b;
      EXPECT_EQ(op.n2, profile.scratch_inodes) << op.b;
    }
    EXPECT_EQ(seen, (std::set<std::string>{"/dev/shm", "/home/agent", "/tmp"}));
    EXPECT_EQ(plan.expected.scratch_bytes, profile.scratch_bytes);
    EXPECT_EQ(plan.expected.scratch_inodes, profile.scratch_inodes);
  });
}

TEST(PlanBox, KernelFilesAreMaskedAndProtected) {
  for_every_profile([](const Profile&, const Plan& plan) {
    const std::set<std::string> masked(plan.masked.begin(), plan.masked.end());
    const std::set<std::string> fixed(plan.read_only.begin(), plan.read_only.end());
    for (const char* path : {"/proc/kcore", "/proc/keys", "/proc/key-users", "/proc/timer_list",
                             "/proc/sched_debug", "/proc/scsi", "/proc/acpi", "/proc/kallsyms"}) {
      EXPECT_EQ(masked.count(path), 1U) << path;
    }
    for (const char* path : {"/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus", "/proc/fs"}) {
      EXPECT_EQ(fixed.count(path), 1U) << path;
    }
    for (const std::string& path : plan.masked) {
      EXPECT_EQ(path.rfind("/proc/", 0), 0U) << path;
      EXPECT_EQ(fixed.count(path), 0U) << path << " is in both lists";
    }
    EXPECT_EQ(op_at(plan, "/sys"), nullptr);
    ASSERT_NE(op_at(plan, "/proc"), nullptr);
    EXPECT_EQ(op_at(plan, "/proc")->code, OpCode::proc);
  });
}

TEST(PlanBox, NoResolverAndOneUser) {
  Plan plan = plan_box(base_profile(), fixed_layout(), "");
  EXPECT_EQ(op_at(plan, "/etc/resolv.conf"), nullptr);
  ASSERT_NE(op_at(plan, "/etc/nsswitch.conf"), nullptr);
  EXPECT_EQ(op_at(plan, "/etc/nsswitch.conf")->a.find("dns"), std::string::npos);
  for (const char* path : {"/etc/passwd", "/etc/group"}) {
    ASSERT_NE(op_at(plan, path), nullptr);
    EXPECT_NE(op_at(plan, path)->a.find("agent:x:1000:"), std::string::npos) << path;
  }
}

// A mount point below another one has to come after it, or it would be covered.
TEST(PlanBox, ParentsComeBeforeChildren) {
  for_every_profile([](const Profile&, const Plan& plan) {
    for (std::size_t i = 0; i < plan.ops.size(); ++i) {
      for (std::size_t j = i + 1; j < plan.ops.size(); ++j) {
        EXPECT_NE(plan.ops[i].b.rfind(plan.ops[j].b + "/", 0), 0U)
            << plan.ops[i].b << " comes before " << plan.ops[j].b;
      }
    }
  });
}

TEST(PlanBox, ProgramTimesAndDescriptors) {
  Profile profile = base_profile();
  profile.listeners = {8123, 8124};
  profile.file_size_limit = 77;
  profile.fds = {{50, 0}, {51, 1}, {52, 2}, {53, 3}, {54, 4}};
  Plan plan = plan_box(profile, fixed_layout(), std::string(16, '\1'));
  EXPECT_EQ(plan.role, plan::Role::box);
  EXPECT_EQ(plan.argv, profile.argv);
  EXPECT_EQ(plan.env, profile.env) << "the environment is the profile's and nothing else";
  EXPECT_EQ(plan.cwd, "/workspace");
  EXPECT_EQ(plan.seccomp, std::string(16, '\1'));
  EXPECT_EQ(plan.listeners, (std::vector<std::uint64_t>{8123, 8124}));
  EXPECT_EQ(plan.program_fds, (std::vector<std::uint64_t>{3, 4})) << "0 to 2 need no parking place";
  EXPECT_EQ(plan.deadline_ms, 9000U);
  EXPECT_EQ(plan.grace_ms, 2000U);
  EXPECT_EQ(plan.file_size_limit, 77U);
}

TEST(PlanBox, ABareHostGivesABareRoot) {
  Plan plan = plan_box(base_profile(), HostLayout{}, "");
  EXPECT_EQ(op_at(plan, "/bin"), nullptr);
  EXPECT_EQ(op_at(plan, "/etc/localtime"), nullptr);
  ASSERT_NE(op_at(plan, "/usr"), nullptr);
}

// Of a box in a pinned image nothing comes from the host but the device nodes and an agent of the host's.
TEST(PlanBoxOfAnImage, TakesNothingFromTheHost) {
  Profile profile = base_profile();
  profile.image = contract::ProfileImage{"sha256:1", "/state/images/1/tree", {}};
  for (const bool own : {false, true}) {
    profile.agent_dir = own ? "/state/images/1/tree/opt/cofferdam/agents/x" : kAgentDir;
    std::set<std::string> from_host;
    bool usr = false;
    std::string agent;
    for (const Op& op : plan_box(profile, image_layout(), "").ops) {
      if (op.a.compare(0, 6, "/host/") == 0 && op.code != OpCode::device) from_host.insert(op.a);
      if (op.b == "/usr") usr = op.code == OpCode::bind && op.a == "/image/usr" && op.n1 == 1;
      if (op.b == "/opt/agent") agent = op.a;
    }
    const std::string host_agent = std::string("/host") + kAgentDir;
    EXPECT_TRUE(usr);
    EXPECT_EQ(from_host, own ? std::set<std::string>{} : std::set<std::string>{host_agent});
    EXPECT_EQ(agent, own ? "/image/opt/cofferdam/agents/x" : host_agent);
  }
}

// Mount tables as the kernel prints them: proc_pid_mountinfo(5).
TEST(PinnedRoot, OnlyTheLastMountOfUsrCounts) {
  const std::string good =
      "102 101 0:73 / / ro,nosuid - tmpfs tmpfs rw\n"
      "137 102 0:57 /usr /usr ro,nosuid,nodev - overlay overlay ro,lowerdir=lower:none\n";
  EXPECT_EQ(usr_device(good), "0:57");
  EXPECT_EQ(usr_device(good + "140 137 8:1 /usr /usr ro - ext4 /dev/sda1 rw\n"), "8:1");
  EXPECT_EQ(usr_device(good + "140 137 0:57 /etc /usr ro - overlay overlay ro\n"), "");
  EXPECT_EQ(usr_device("137 102 0:57 /usr /usr rw,nosuid - overlay overlay rw\n"), "");
  EXPECT_EQ(usr_device(good + "141 137 0:57 /usr /usr/lib ro - overlay overlay ro\n"), "0:57");
  EXPECT_EQ(usr_device(""), "");
}

}  // namespace
}  // namespace cofferdam::sandbox
