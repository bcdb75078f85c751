// The filter, rule by rule: generated from its table, and what looks at arguments by hand. The acts ask the
// filter and make no call (probe/filtered.cc).
#include <fmt/core.h>
#include <linux/sched.h>
#include <sys/syscall.h>

#include <map>

#include "base/text.h"
#include "gate/attack.h"
#include "sandbox/native/seccomp_table.h"

namespace cofferdam::gate {
namespace {

const std::vector<std::string>& filter() {
  static const std::vector<std::string> layers = {"seccomp"};
  return layers;
}

// Which rows of the lists a rule is about.
std::string classes_of(const std::string& name) {
  static const std::map<std::string, std::string> table = {
      {"io_uring_setup", "D23"},
      {"io_uring_enter", "D23"},
      {"io_uring_register", "D23"},
      {"keyctl", "D24"},
      {"add_key", "D24"},
      {"request_key", "D24"},
      {"pidfd_getfd", "D25"},
      {"unshare", "D20"},
      {"setns", "D20"},
      {"clone3", "D15 D20"},
      {"fsopen", "D15"},
      {"fsconfig", "D15"},
      {"fsmount", "D15"},
      {"fspick", "D15"},
      {"open_tree", "D15"},
      {"open_tree_attr", "D15"},
      {"move_mount", "D15"},
      {"mount_setattr", "D15"},
      {"mount", "D15 D17 D35"},
      {"umount2", "D15"},
      {"pivot_root", "D15"},
      {"mknod", "D31"},
      {"mknodat", "D31"},
      {"userfaultfd", "D21"},
      {"open_by_handle_at", "D21"},
  };
  const auto found = table.find(name);
  return found == table.end() ? "" : found->second;
}

// The rules for nodes look at the kind of node.
std::string arguments_of(const std::string& name) {
  if (name == "mknod") return " 0 020600";
  return name == "mknodat" ? " 0 0 060600" : "";
}

Attack rule(const sandbox::SyscallRule& from) {
  const std::string name = from.name;
  return {"call-" + name,
          "seccomp",
          classes_of(name),
          filter(),
          fmt::format("{}: {}", name, from.reason),
          fmt::format("filtered {}{}", from.number, arguments_of(name))};
}

Attack call(const std::string& id, const char* control, const char* classes, const std::string& what,
            long number, const std::string& arguments) {
  return {"call-" + id, control, classes, filter(), what, fmt::format("filtered {} {}", number, arguments)};
}

void add_clone(std::vector<Attack>* out) {
  const std::pair<const char*, unsigned> kinds[] = {
      {"user", CLONE_NEWUSER}, {"mount", CLONE_NEWNS}, {"pid", CLONE_NEWPID},      {"net", CLONE_NEWNET},
      {"ipc", CLONE_NEWIPC},   {"uts", CLONE_NEWUTS},  {"cgroup", CLONE_NEWCGROUP}};
  for (const auto& [name, flag] : kinds) {
    out->push_back(call(fmt::format("clone-{}", name), "no-user-namespaces", "D20",
                        fmt::format("clone with a new {} namespace", name), SYS_clone,
                        fmt::format("{}", flag)));
  }
}

void add_sockets(std::vector<Attack>* out) {
  struct Family {
    const char* name;
    const char* classes;
    const char* arguments;
  };
  const Family families[] = {{"vsock", "D30", "40 1 0"},
                             {"alg", "D21", "38 5 0"},
                             {"packet", "D20", "17 3 0"},
                             {"xdp", "", "44 3 0"},
                             {"bluetooth", "", "31 3 0"},
                             {"can", "", "29 3 1"},
                             {"kcm", "", "41 2 0"},
                             {"netlink-netfilter", "D20", "16 3 12"},
                             {"netlink-audit", "", "16 3 9"},
                             {"unknown", "", "4096 1 0"},
                             {"high-bits", "D30", "0x100000028 1 0"}};
  for (const Family& family : families) {
    out->push_back(call(fmt::format("socket-{}", family.name), "socket-families", family.classes,
                        fmt::format("a socket of the family {}", family.name), SYS_socket, family.arguments));
  }
  out->push_back(
      call("socketpair-inet", "socket-families", "", "a pair of another family", SYS_socketpair, "2 1 0 0"));
}

// PID 1 has the program's uid: the filter alone keeps its limits and its processor time.
void add_init_guard(std::vector<Attack>* out) {
  const char* control = "init-opaque";
  const char* classes = "";
  const std::vector<Attack> rows = {
      call("prlimit-init", control, classes, "set a limit of PID 1's", SYS_prlimit64, "1 0 0 0"),
      call("scheduler-init", control, classes, "set PID 1's scheduler", SYS_sched_setscheduler, "1 5 0"),
      call("schedparam-init", control, classes, "set PID 1's scheduling", SYS_sched_setparam, "1 0"),
      call("schedattr-init", control, classes, "set PID 1's scheduling", SYS_sched_setattr, "1 0 0"),
      call("affinity-init", control, classes, "set PID 1's processors", SYS_sched_setaffinity, "1 0 0"),
      call("nice-init", control, classes, "set PID 1's priority", SYS_setpriority, "0 1 19"),
      call("nice-user", control, classes, "set the priority of all of the user's", SYS_setpriority, "2 0 19"),
      call("ioprio-init", control, classes, "set PID 1's input and output priority", SYS_ioprio_set, "1 1 0"),
      call("ioprio-user", control, classes, "set that of all of the user's", SYS_ioprio_set, "3 0 0"),
  };
  out->insert(out->end(), rows.begin(), rows.end());
}

void add_terminal(std::vector<Attack>* out) {
  const char* control = "no-terminal";
  out->push_back(call("tiocsti", control, "D13", "TIOCSTI", SYS_ioctl, "0 0x5412 0"));
  out->push_back(
      call("tiocsti-high", control, "D13", "TIOCSTI with high bits", SYS_ioctl, "0 0x100005412 0"));
  out->push_back(call("tioclinux", control, "D13", "TIOCLINUX", SYS_ioctl, "0 0x541c 0"));
}

void add_foreign(std::vector<Attack>* out) {
  const std::pair<const char*, const char*> ways[] = {{"x32", "of the x32 interface"},
                                                      {"ia32", "of 32-bit programs"}};
  for (const auto& [way, whose] : ways) {
    const auto row = [&, way = way, whose = whose](const char* name, const char* what, int number) {
      out->push_back({fmt::format("call-{}-{}", way, name), "seccomp",
                      way == std::string("ia32") ? "C7 D30" : "C7", filter(),
                      fmt::format("{} by the numbers {}", what, whose),
                      fmt::format("filtered-{} {}", way, number)});
    };
    const bool x32 = way == std::string("x32");
    row("getpid", "a harmless call", x32 ? 39 : 20);
    row("socket", x32 ? "socket" : "socketcall, which hides the family,", x32 ? 41 : 102);
    row("mount", "mount", x32 ? 165 : 21);
  }
}

}  // namespace

void add_call_attacks(std::vector<Attack>* out) {
  for (const sandbox::SyscallRule& from : sandbox::syscall_rules()) {
    // What looks at arguments has rows of its own below, but for the nodes.
    const bool node = starts_with(from.name, "mknod");
    const bool always = from.when.empty() && from.error != 0;
    if (node || always) out->push_back(rule(from));
  }
  add_clone(out);
  add_sockets(out);
  add_terminal(out);
  add_init_guard(out);
  add_foreign(out);
}

}  // namespace cofferdam::gate
