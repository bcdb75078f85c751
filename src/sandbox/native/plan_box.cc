#include "sandbox/native/plan_box.h"

#include <sys/sysmacros.h>

#include <algorithm>
#include <iterator>
#include <set>

#include "base/text.h"
#include "sandbox/native/cgroup.h"
#include "sandbox/native/landlock_rules.h"

namespace cofferdam::sandbox {
namespace {

using contract::Access;
using contract::Profile;
using plan::Op;
using plan::OpCode;

Op dir(const char* path, std::uint64_t mode = 0755) {
  return {OpCode::dir, "", path, mode, 0, 0};
}
Op file(const char* path, std::string content) {
  return {OpCode::file, std::move(content), path, 0, 0, 0};
}
Op symlink(std::string text, const std::string& path) {
  return {OpCode::symlink, std::move(text), path, 0, 0, 0};
}
Op bind(const std::string& source, const std::string& target, Access access, std::uint64_t more = 0) {
  return {OpCode::bind, source, target, (access == Access::read_write ? 0 : plan::kReadOnly) | more, 0, 0};
}

// What the agent can write, or wrote, is no program where only the agent's own are.
std::uint64_t no_exec(const Profile& profile) {
  return profile.shell == contract::Shell::none ? plan::kNoExec : 0;
}

// The host's or the image's programs and libraries, read-only, under the names by which they call each other.
void add_system(const HostLayout& layout, std::vector<Op>* ops) {
  ops->push_back(bind(layout.source + "/usr", "/usr", Access::read_only));
  for (const RootEntry& entry : layout.root_entries) {
    if (entry.link_text.empty()) {
      ops->push_back(bind(layout.source + "/" + entry.name, "/" + entry.name, Access::read_only));
    } else {
      ops->push_back(symlink(entry.link_text, "/" + entry.name));
    }
  }
}

// Only what the agent's programs need to start, at the paths where they look for it.
void add_programs(const HostLayout& layout, std::vector<Op>* ops) {
  ops->push_back(dir("/usr"));
  std::set<std::string> made;
  for (const ProgramFile& file : layout.programs) {
    for (std::size_t at = file.target.find('/', 1); at != std::string::npos;
         at = file.target.find('/', at + 1)) {
      const std::string folder = file.target.substr(0, at);
      if (made.insert(folder).second) ops->push_back(dir(folder.c_str()));
    }
    ops->push_back(bind(layout.source + file.source, file.target, Access::read_only));
  }
}

void add_etc(const Profile& profile, const HostLayout& layout, std::vector<Op>* ops) {
  ops->push_back(dir("/etc"));
  ops->push_back(file("/etc/passwd",
                      "root:x:0:0:root:/nonexistent:/usr/sbin/nologin\n"
                      "agent:x:1000:1000:agent:/home/agent:/bin/bash\n"
                      "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n"));
  ops->push_back(file("/etc/group", "root:x:0:\nagent:x:1000:\nnogroup:x:65534:\n"));
  ops->push_back(file("/etc/hosts", "127.0.0.1 localhost cofferdam\n"));
  ops->push_back(file("/etc/hostname", "cofferdam\n"));
  // No resolver: names other than those in /etc/hosts do not exist in a box.
  ops->push_back(file("/etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files\n"));
  if (!layout.time_zone.empty()) ops->push_back(file("/etc/localtime", layout.time_zone));
  if (profile.shell == contract::Shell::none) return;
  for (const std::string& name : layout.etc_entries) {
    ops->push_back(bind(layout.source + "/etc/" + name, "/etc/" + name, Access::read_only));
  }
}

void add_more(const HostLayout& layout, std::vector<Op>* ops) {
  if (!layout.more.empty()) ops->push_back(dir("/opt"));
  for (const RootEntry& entry : layout.more) {
    if (entry.link_text.empty()) {
      ops->push_back(bind(layout.source + "/" + entry.name, "/" + entry.name, Access::read_only));
    } else {
      ops->push_back(symlink(entry.link_text, "/" + entry.name));
    }
  }
}

void add_devices(const Profile& profile, std::vector<Op>* ops) {
  ops->push_back(dir("/dev"));
  const std::pair<const char*, std::uint64_t> devices[] = {
      {"null", makedev(1, 3)},   {"zero", makedev(1, 5)},    {"full", makedev(1, 7)},
      {"random", makedev(1, 8)}, {"urandom", makedev(1, 9)}, {"tty", makedev(5, 0)},
  };
  for (const auto& [name, number] : devices) {
    ops->push_back(
        {OpCode::device, std::string("/host/dev/") + name, std::string("/dev/") + name, number, 0, 0});
  }
  ops->push_back(symlink("/proc/self/fd", "/dev/fd"));
  ops->push_back(symlink("/proc/self/fd/0", "/dev/stdin"));
  ops->push_back(symlink("/proc/self/fd/1", "/dev/stdout"));
  ops->push_back(symlink("/proc/self/fd/2", "/dev/stderr"));
  ops->push_back({OpCode::devpts, "", "/dev/pts", 0, 0, 0});
  ops->push_back(symlink("pts/ptmx", "/dev/ptmx"));
  ops->push_back({OpCode::tmpfs, "", "/dev/shm", profile.scratch_bytes, profile.scratch_inodes,
                  01777 | no_exec(profile)});
}

void add_scratch(const Profile& profile, std::vector<Op>* ops) {
  ops->push_back(dir("/home"));
  ops->push_back({OpCode::tmpfs, "", "/home/agent", profile.scratch_bytes, profile.scratch_inodes,
                  0700 | no_exec(profile)});
  ops->push_back(
      {OpCode::tmpfs, "", "/tmp", profile.scratch_bytes, profile.scratch_inodes, 01777 | no_exec(profile)});
  ops->push_back(dir("/run"));
  ops->push_back(dir("/var"));
  ops->push_back(symlink("/tmp", "/var/tmp"));
}

// The folders on the way first. HOME itself is closed to others, so the usual modes do.
void add_home_files(const Profile& profile, std::vector<Op>* ops) {
  const std::string home = "/home/agent/";
  for (const contract::HomeFile& wanted : profile.home_files) {
    for (std::size_t at = wanted.name.find('/'); at != std::string::npos;
         at = wanted.name.find('/', at + 1)) {
      ops->push_back(dir((home + wanted.name.substr(0, at)).c_str()));
    }
    ops->push_back(file((home + wanted.name).c_str(), wanted.content));
  }
}

// The one place that a box of the agent's own files comes from. Of a bind mount the mount table shows the
// host's path, of an overlay with relative names it does not.
Op agent_files(const Profile& profile, const plan::Plan& plan) {
  const std::string tree = profile.image.has_value() ? profile.image->tree + "/" : "";
  if (!tree.empty() && starts_with(profile.agent_dir, tree)) {
    return bind("/image/" + profile.agent_dir.substr(tree.size()), "/opt/agent", Access::read_only);
  }
  const std::string source = "/host" + profile.agent_dir;
  if (!has_layer(plan, plan::Layer::hidden_paths)) return bind(source, "/opt/agent", Access::read_only);
  return {OpCode::overlay, source, "/opt/agent", 0, 0, 0};
}

// What the profile says, and more where the gate leaves a layer out to show what it stops.
Profile widened(Profile profile, const plan::Plan& plan) {
  constexpr std::uint64_t kWider = 16;
  if (!has_layer(plan, plan::Layer::read_only_work) && profile.work == Access::read_only) {
    profile.work = Access::read_write;
  }
  if (!has_layer(plan, plan::Layer::read_only_metadata) && profile.metadata == Access::read_only) {
    profile.metadata = Access::read_write;
  }
  if (!has_layer(plan, plan::Layer::no_output)) profile.output = Access::read_write;
  if (!has_layer(plan, plan::Layer::scratch_bound)) {
    profile.scratch_bytes *= kWider;
    profile.scratch_inodes *= kWider;
  }
  return profile;
}

// A proc of the box's own pid namespace.
Op proc(const plan::Plan& plan) {
  if (!has_layer(plan, plan::Layer::own_proc)) return bind("/host/proc", "/proc", Access::read_write);
  return {OpCode::proc, "", "/proc", 0, 0, 0};
}

void add_storage(const Profile& profile, const plan::Plan& plan, std::vector<Op>* ops) {
  if (profile.work != Access::none) {
    ops->push_back(bind("/work/tree", "/workspace", profile.work, no_exec(profile)));
  } else if (profile.metadata != Access::none) {
    ops->push_back(dir("/workspace"));  // empty, and read-only with the root
  }
  if (profile.metadata != Access::none)
    ops->push_back(bind("/meta/git", "/workspace/.git", profile.metadata, no_exec(profile)));
  if (profile.output != Access::none) ops->push_back(bind("/out", "/out", profile.output, no_exec(profile)));
  // Never writable, whatever the profile says: what the kernel has under an overlay must not be touched.
  if (profile.upper != Access::none)
    ops->push_back(bind("/work/upper", "/upper", Access::read_only, no_exec(profile)));
  if (!profile.agent_dir.empty()) {
    ops->push_back(dir("/opt"));
    ops->push_back(agent_files(profile, plan));
  }
}

// An unknown name takes nothing away.
std::uint64_t layer_bits(const std::vector<std::string>& names) {
  std::uint64_t bits = 0;
  for (std::size_t bit = 0; bit < std::size(plan::kLayerNames); ++bit) {
    if (std::find(names.begin(), names.end(), plan::kLayerNames[bit]) != names.end()) bits |= 1ULL << bit;
  }
  return bits;
}

}  // namespace

plan::Plan plan_box(const Profile& profile, const HostLayout& layout, const std::string& seccomp) {
  plan::Plan plan;
  plan.role = plan::Role::box;
  plan.without = layer_bits(profile.without);
  const Profile given = widened(profile, plan);
  if (profile.shell == contract::Shell::none) {
    add_programs(layout, &plan.ops);
    add_etc(profile, layout, &plan.ops);
  } else {
    add_system(layout, &plan.ops);
    add_etc(profile, layout, &plan.ops);
    add_more(layout, &plan.ops);
  }
  add_devices(given, &plan.ops);
  add_scratch(given, &plan.ops);
  add_home_files(profile, &plan.ops);
  plan.ops.push_back(proc(plan));
  add_storage(given, plan, &plan.ops);
  if (!has_layer(plan, plan::Layer::private_root))
    plan.ops.push_back(bind("/host", "/host", Access::read_only));
  plan.argv = profile.argv;
  plan.env = profile.env;
  plan.cwd = profile.cwd;
  plan.seccomp = seccomp;
  for (std::uint16_t port : profile.listeners) plan.listeners.push_back(port);
  for (const FdMapping& map : profile.fds) {
    if (map.target > 2) plan.program_fds.push_back(static_cast<std::uint64_t>(map.target));
  }
  plan.masked = {"/proc/kcore", "/proc/keys", "/proc/key-users", "/proc/timer_list",   "/proc/sched_debug",
                 "/proc/scsi",  "/proc/acpi", "/proc/kallsyms",  "/proc/latency_stats"};
  plan.read_only = {"/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus", "/proc/fs", "/proc/driver"};
  plan.deadline_ms = static_cast<std::uint64_t>(profile.deadline.count());
  plan.grace_ms = static_cast<std::uint64_t>(profile.grace.count());
  plan.file_size_limit = profile.file_size_limit;
  plan.memory_bytes = profile.memory_bytes;
  plan.pids = profile.pids;
  plan.process_limit = (profile.pids != 0 ? profile.pids : kOwnBoxPids) + 1;
  plan.landlock = landlock_rules(given, layout, plan);
  plan.shell = profile.shell == contract::Shell::none ? 0 : 1;
  const bool empty_work = profile.work == Access::none && profile.metadata != Access::none;
  plan.expected.work = static_cast<std::uint8_t>(empty_work ? Access::read_only : profile.work);
  plan.expected.metadata = static_cast<std::uint8_t>(profile.metadata);
  plan.expected.output = static_cast<std::uint8_t>(profile.output);
  // Of what can be written: a read-only tree may be the cached one, on the host's own file system.
  if (profile.work == Access::read_write) {
    plan.expected.work_bytes = profile.work_bytes;
    plan.expected.work_inodes = profile.work_inodes;
  }
  plan.expected.scratch_bytes = profile.scratch_bytes;
  plan.expected.scratch_inodes = profile.scratch_inodes;
  return plan;
}

}  // namespace cofferdam::sandbox
