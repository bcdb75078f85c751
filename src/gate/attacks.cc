// Namespaces, mounts, identity, processes, the network and what is bounded.
#include "gate/attack.h"

namespace cofferdam::gate {
namespace {

using Layers = std::vector<std::string>;

// Who may do what to a mount or a namespace is asked three times: by the filter, by the capability sets, and
// by the user namespace that owns it.
Layers filter_and_rights() {
  return {"seccomp", "capabilities"};
}
// A process under Landlock may change no mount at all (landlock(7)).
Layers filter_rights_and_rules() {
  return {"seccomp", "capabilities", "landlock"};
}
Layers filter_rights_owner_and_rules() {
  return {"seccomp", "capabilities", "nested-userns", "landlock"};
}
Layers filter_rights_and_owner() {
  return {"seccomp", "capabilities", "nested-userns"};
}

void add_mounts(std::vector<Attack>* out) {
  const std::vector<Attack> rows = {
      {"mount-tmpfs", "capabilities", "D15", filter_rights_and_rules(), "mount a tmpfs without a bound",
       "mount-tmpfs"},
      {"mount-bind", "capabilities", "D15", filter_rights_and_rules(), "bind /usr elsewhere",
       "mount-bind /usr"},
      {"mount-cgroup", "capabilities", "D12 D17", filter_rights_owner_and_rules(), "mount the control groups",
       "mount-cgroup"},
      {"umount-metadata", "git-metadata", "D15", filter_rights_owner_and_rules(),
       "uncover what is below .git", "umount /workspace/.git"},
      {"umount-proc-sys", "kernel-settings", "D18", filter_rights_and_rules(),
       "take the read-only mount off /proc/sys", "umount /proc/sys"},
      {"umount-masked", "kernel-settings", "D18", filter_rights_and_rules(), "uncover a masked file of /proc",
       "umount /proc/kallsyms"},
      {"remount-usr", "root-read-only", "D15", filter_rights_owner_and_rules(), "make /usr writable",
       "remount-writable /usr"},
      {"remount-root", "root-read-only", "D15", filter_rights_owner_and_rules(), "make the root writable",
       "remount-writable /"},
      {"remount-metadata", "git-metadata", "D15", filter_rights_owner_and_rules(), "make .git writable",
       "remount-writable /workspace/.git"},
      {"grow-workspace", "storage-bound", "D35", filter_rights_owner_and_rules(),
       "make the work storage larger", "remount-bigger /workspace 64m"},
      {"grow-scratch", "scratch-bound", "D35", filter_rights_owner_and_rules(), "make /tmp larger",
       "remount-bigger /tmp 64m"},
      {"chroot", "capabilities", "D15", filter_and_rights(), "change the root", "chroot /tmp"},
      {"fsopen", "seccomp", "D15", filter_and_rights(), "open a file system by the new interface", "fsopen"},
      {"open-tree", "seccomp", "D15", filter_and_rights(), "copy a mount by the new interface",
       "open-tree /usr"},
      {"mount-setattr", "seccomp", "D15", filter_and_rights(), "change a mount by the new interface",
       "mount-setattr /tmp"},
  };
  out->insert(out->end(), rows.begin(), rows.end());
}

void add_namespaces(std::vector<Attack>* out) {
  const std::string user = "0x10000000";
  const Layers no_user = {"seccomp", "userns-limit"};
  const std::vector<Attack> rows = {
      {"unshare-user", "no-user-namespaces", "D20 C10", no_user, "regain rights in a new user namespace",
       "unshare " + user},
      {"clone-user", "no-user-namespaces", "D20", no_user, "the same by clone", "clone " + user},
      {"clone3-user", "no-user-namespaces", "D15 D20", no_user, "the same by clone3, which hides its flags",
       "clone3 " + user},
      {"unshare-mount", "capabilities", "D20", filter_and_rights(), "a mount namespace of its own",
       "unshare 0x20000"},
      {"unshare-net", "network", "D20", filter_and_rights(), "a network namespace of its own",
       "unshare 0x40000000"},
      {"unshare-cgroup", "capabilities", "D17", filter_and_rights(), "a control-group namespace of its own",
       "unshare 0x2000000"},
      {"enter-net", "network", "D20", filter_rights_and_owner(), "enter a network namespace",
       "enter-own net"},
      {"hostname", "capabilities", "D20", filter_rights_and_owner(), "set the box's name, to the same",
       "sethostname"},
      {"same-net",
       "network",
       "C13 C14",
       {"own-network"},
       "be in the host's network namespace",
       "namespace-is net $net"},
      {"same-ipc",
       "process-tree",
       "D34",
       {"own-ipc"},
       "be in the host's IPC namespace",
       "namespace-is ipc $ipc"},
      {"same-uts",
       "process-tree",
       "D20",
       {"own-uts"},
       "be in the host's UTS namespace",
       "namespace-is uts $uts"},
      {"same-cgroup",
       "process-tree",
       "D12",
       {"own-cgroup"},
       "see the host's control groups by name",
       "namespace-is cgroup $cgroup"},
  };
  out->insert(out->end(), rows.begin(), rows.end());
}

void add_identity(std::vector<Attack>* out) {
  const Layers setting = {"read-only-proc", kHostRootUnmapped};
  const std::vector<Attack> rows = {
      {"become-root", "identity", "D19", {"identity"}, "be root inside", "become-root"},
      {"hold-capabilities",
       "capabilities",
       "D11 C8",
       {"capabilities"},
       "hold a capability in any of five sets",
       "capabilities"},
      {"gain-by-exec",
       "no-new-privs",
       "C8",
       {"no-new-privs"},
       "be one who can gain rights by a program",
       "may-gain"},
      {"set-id",
       "no-new-privs",
       "D22",
       {"nosuid"},
       "have set-id bits count in a writable folder",
       "set-id-counts /tmp"},
      {"core-pattern", "host-root-unmapped", "D18 D19", setting, "open core_pattern for writing",
       "open-write /proc/sys/kernel/core_pattern", Setting::agent, Need::root},
      {"core-pattern-same", "kernel-settings", "D18", setting, "write core_pattern's own value to it",
       "write-same /proc/sys/kernel/core_pattern", Setting::agent, Need::root},
      {"modprobe-path", "kernel-settings", "D18", setting, "open the module loader's path for writing",
       "open-write /proc/sys/kernel/modprobe", Setting::agent, Need::root},
      {"overcommit", "kernel-settings", "D18", setting, "open overcommit_memory for writing",
       "open-write /proc/sys/vm/overcommit_memory", Setting::agent, Need::root},
      {"sysrq", "kernel-settings", "D18", setting, "open sysrq-trigger for writing",
       "open-write /proc/sysrq-trigger", Setting::agent, Need::root},
      {"namespace-limits",
       "kernel-settings",
       "D18",
       {"read-only-proc", "capabilities"},
       "open a limit of the own user namespace for writing",
       "open-write /proc/sys/user/max_cgroup_namespaces"},
      {"network-settings",
       "kernel-settings",
       "D18",
       {"read-only-proc", "capabilities", "nested-userns"},
       "open ip_forward for writing",
       "open-write /proc/sys/net/ipv4/ip_forward"},
      {"add-key", "seccomp", "D24", {"seccomp"}, "add a key", "add-key"},
      {"join-keyring", "seccomp", "D24", {"seccomp"}, "join a session keyring", "join-keyring"},
  };
  out->insert(out->end(), rows.begin(), rows.end());
}

void add_processes(std::vector<Attack>* out) {
  const Layers opaque = {"opaque-init"};
  // Nor may a process under Landlock look into one that is not: ptrace(2) and what asks as it does.
  const Layers opaque_and_rules = {"opaque-init", "landlock"};
  const std::vector<Attack> rows = {
      {"see-host-process",
       "process-tree",
       "D25",
       {"own-proc"},
       "see a process of the host by its number",
       "see-process $pid $name"},
      {"init-program", "init-opaque", "D1", opaque_and_rules, "reach the launcher's program file",
       "open-read /proc/1/exe"},
      {"init-environment", "init-opaque", "D25", opaque_and_rules, "read PID 1's environment",
       "open-read /proc/1/environ"},
      {"init-root", "init-opaque", "D2", opaque_and_rules, "walk through PID 1's root",
       "open-read /proc/1/root/etc"},
      {"init-descriptors", "init-opaque", "D2", opaque, "list PID 1's descriptors", "list /proc/1/fd"},
      {"init-oom-score", "init-opaque", "", opaque, "open PID 1's oom_score_adj for writing",
       "open-write /proc/1/oom_score_adj"},
      {"trace-init", "init-opaque", "D25", opaque_and_rules, "trace PID 1", "trace-init", Setting::agent,
       Need::tracing},
      {"read-init", "init-opaque", "D25", opaque_and_rules, "read PID 1's memory", "read-init",
       Setting::agent, Need::tracing},
      {"init-memory", "init-opaque", "D25", opaque_and_rules, "open PID 1's memory for reading",
       "open-read /proc/1/mem", Setting::agent, Need::tracing},
      {"take-descriptor",
       "init-opaque",
       "D25",
       {"seccomp", "opaque-init", "landlock"},
       "take a descriptor of PID 1's",
       "take-descriptor-of-init",
       Setting::agent,
       Need::tracing},
      {"limit-init", "init-opaque", "", {"seccomp"}, "set a limit of PID 1's, to the same", "limit-init 7"},
      {"nice-init", "init-opaque", "", {"seccomp"}, "set PID 1's priority, to the same", "nice-init"},
      {"pin-init", "init-opaque", "", {"seccomp"}, "set PID 1's processors, to the same", "pin-init"},
      {"terminal", "no-terminal", "D13", {"session"}, "open the caller's terminal", "open-terminal"},
      {"type-ahead",
       "no-terminal",
       "D13",
       {"session", "seccomp"},
       "type into the caller's terminal",
       "type-ahead",
       Setting::agent,
       Need::terminal},
      {"tiocsti",
       "no-terminal",
       "D13",
       {"seccomp"},
       "TIOCSTI on a terminal of its own",
       "terminal-request 0x5412 0",
       Setting::agent,
       Need::terminal},
      {"tiocsti-high",
       "no-terminal",
       "D13",
       {"seccomp"},
       "the same with a bit that the kernel does not read",
       "terminal-request 0x5412 1",
       Setting::agent,
       Need::terminal},
      {"walk-descriptor",
       "descriptors",
       "D2",
       {"closed-fds", "landlock"},
       "open a file of the host by a leaked folder",
       "walk-descriptor 10 canary"},
      {"enter-descriptor",
       "descriptors",
       "D2",
       {"closed-fds"},
       "have a leaked folder as working directory",
       "enter-descriptor 10"},
  };
  out->insert(out->end(), rows.begin(), rows.end());
}

void add_network(std::vector<Attack>* out) {
  const Layers owner = {"capabilities", "nested-userns"};
  const std::vector<Attack> rows = {
      {"host-loopback",
       "network",
       "C13 C14 C28",
       {"own-network"},
       "connect to a server on the host's loopback",
       "connect-loopback $port"},
      {"abstract-socket",
       "network",
       "C4 D26",
       {"own-network"},
       "connect to an abstract socket of the host",
       "connect-abstract $abstract",
       Setting::agent,
       Need::nothing,
       false,
       {"landlock"}},
      {"abstract-socket-scope",
       "landlock",
       "C4 D26",
       {"landlock"},
       "the same where only Landlock is in the way",
       "connect-abstract $abstract",
       Setting::agent,
       Need::landlock_scope,
       false,
       {"own-network"}},
      {"route-v4",
       "network",
       "C14 C28",
       {"own-network"},
       "have an IPv4 route",
       "route-v4 192.0.2.1",
       Setting::agent,
       Need::route_v4},
      {"route-v6",
       "network",
       "C14",
       {"own-network"},
       "have an IPv6 route",
       "route-v6 2001:db8::1",
       Setting::agent,
       Need::route_v6},
      {"configure-lo", "network", "C13", owner, "set the flags of lo, to the same", "configure-lo"},
      {"raw-socket", "network", "C14", owner, "open a raw socket", "socket 2 3 1"},
      {"packet-socket", "socket-families", "D20", filter_rights_and_owner(), "open a packet socket",
       "socket 17 3 0"},
  };
  out->insert(out->end(), rows.begin(), rows.end());
}

// The bounds of a small box are passed by a little.
void add_bounds(std::vector<Attack>* out) {
  const Layers limits = {"rlimits"};
  const std::vector<Attack> rows = {
      {"fork-50",
       "pids",
       "D33",
       {"rlimits", "watch"},
       "50 processes where 20 are the bound",
       "fork-many 50 $hold",
       Setting::small,
       Need::nothing,
       true,
       {"cgroup"}},
      {"fork-50-group",
       "pids",
       "D33",
       {"cgroup"},
       "the same where only the control group is in the way",
       "fork-many 50 $hold",
       Setting::small,
       Need::groups,
       true,
       {"rlimits", "watch"}},
      {"take-memory",
       "",
       "D34",
       {"watch"},
       "64 MiB where 32 are the bound",
       "take-memory 67108864 $hold",
       Setting::small,
       Need::nothing,
       true,
       {"cgroup"}},
      {"take-memory-group",
       "memory",
       "D34",
       {"cgroup"},
       "the same where only the control group is in the way",
       "take-memory 67108864 $hold",
       Setting::small,
       Need::groups,
       true,
       {"watch"}},
      {"core-limit", "", "D34", limits, "a hard limit for core files above 0", "raise-limit 4 1",
       Setting::agent, Need::core_limit},
      {"file-limit", "", "D33", limits, "a hard limit of more than 4096 descriptors", "raise-limit 7 4097",
       Setting::agent, Need::file_limit},
      {"memlock-limit", "", "D34", limits, "a hard limit of more than 8 MiB of locked memory",
       "raise-limit 8 8388609", Setting::agent, Need::memlock_limit},
  };
  out->insert(out->end(), rows.begin(), rows.end());
}

// What must not be denied, or builds and test suites stop working (G16), and people switch the box off.
void add_works(std::vector<Attack>* out) {
  const std::vector<Attack> rows = {
      {"works-server", "", "G16", {}, "a server on loopback works", "serve-loopback"},
      {"works-debugger", "", "G16", {}, "tracing a child works", "trace-child"},
      {"works-execute", "", "G16", {}, "executing from /tmp works", "execute-copy /tmp/cofferdam-copy"},
      {"works-home",
       "",
       "C17 C19",
       {},
       "HOME is writable and the box's own",
       "create /home/agent/.claude.json"},
      {"works-workspace", "work-tree", "", {}, "the work tree is writable", "create /workspace/x"},
      {"works-fork",
       "",
       "D33",
       {},
       "a few processes fit into the bound",
       "fork-many 5 0",
       Setting::small,
       Need::nothing,
       true},
      {"works-read",
       "work-tree",
       "",
       {},
       "a planning phase reads the work tree",
       "open-read /workspace",
       Setting::planning},
  };
  out->insert(out->end(), rows.begin(), rows.end());
}

}  // namespace

void add_namespace_attacks(std::vector<Attack>* out) {
  add_mounts(out);
  add_namespaces(out);
  add_identity(out);
  add_processes(out);
  add_network(out);
  add_bounds(out);
  add_works(out);
}

std::vector<Attack> attacks() {
  std::vector<Attack> all;
  add_namespace_attacks(&all);
  add_file_attacks(&all);
  add_call_attacks(&all);
  add_own_probes(&all);
  return all;
}

}  // namespace cofferdam::gate
