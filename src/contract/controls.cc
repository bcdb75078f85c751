#include "contract/controls.h"

#include <algorithm>

namespace cofferdam::contract {
namespace {

constexpr Need kYes = Need::required;
constexpr Need kNo = Need::best_effort;
constexpr const char* kGroups =
    "run `sudo cofferdam host-setup --user NAME` for a user who is not root; as root mount the control "
    "groups of "
    "memory and pids";

}  // namespace

const char* need_name(Need need) {
  return need == Need::required ? "required" : "best-effort";
}

const char* mode_name(Mode mode) {
  switch (mode) {
    case Mode::root:
      return "root";
    case Mode::rootless:
      return "rootless";
    case Mode::undelegated:
      return "rootless without control groups";
  }
  return "";
}

const std::vector<Control>& control_table() {
  // clang-format off
  static const std::vector<Control> table = {
      {"host-root-unmapped", "the host's uid 0 is not in the box's id map", "writing root-owned kernel files",
       {kYes, kYes, kYes}, "outside", ""},
      {"identity", "one unprivileged uid and gid", "acting as another user",
       {kYes, kYes, kYes}, "inside", ""},
      {"supplementary-groups", "no supplementary groups", "reaching files through a group of the caller's",
       {kYes, kNo, kNo}, "inside", "run as root, or from a session without further groups"},
      {"capabilities", "all five capability sets are empty", "mounts, raw sockets, tracing others",
       {kYes, kYes, kYes}, "inside", ""},
      {"no-new-privs", "no_new_privs is set", "set-id programs and file capabilities",
       {kYes, kYes, kYes}, "inside", ""},
      {"seccomp", "a system-call filter is loaded and answers", "kernel interfaces that no build needs",
       {kYes, kYes, kYes}, "inside", "run a kernel with CONFIG_SECCOMP_FILTER"},
      {"socket-families", "only UNIX, INET, INET6 and route NETLINK sockets",
       "VSOCK to the host, kernel crypto sockets",
       {kYes, kYes, kYes}, "inside", ""},
      {"no-user-namespaces", "no further user namespace can be made",
       "regaining capabilities, unbounded mounts",
       {kYes, kYes, kYes}, "inside", ""},
      {"root-read-only", "the root file system is read-only", "planting files outside the bounded places",
       {kYes, kYes, kYes}, "inside", ""},
      {"pinned-root", "the root file system is a pinned image, verified for this use",
       "programs of the host that differ from run to run, and secrets below /usr",
       {kNo, kNo, kNo}, "outside", "name an image with --image or box.image; see docs/images.md"},
      {"work-tree", "the work tree is writable or not, as the phase says", "changes in a read-only phase",
       {kYes, kYes, kYes}, "inside", ""},
      {"git-metadata", "git metadata is read-only and not the agent's",
       "hooks and configuration for a later git",
       {kYes, kYes, kYes}, "inside", ""},
      {"output", "the way out is not in the agent's box", "forging the result",
       {kYes, kYes, kYes}, "inside", ""},
      {"storage-bound", "the work storage is bounded in bytes and inodes", "filling the host",
       {kYes, kYes, kYes}, "inside", ""},
      {"scratch-bound", "HOME, /tmp and /dev/shm are bounded and ephemeral",
       "filling the host, leaving things behind",
       {kYes, kYes, kYes}, "inside", ""},
      {"memory", "a control group bounds the memory of the box, without swap",
       "taking the host's memory",
       {kYes, kYes, kNo}, "outside", kGroups},
      {"pids", "processes and threads of the box are bounded", "fork bombs",
       {kYes, kYes, kYes}, "outside", kGroups},
      {"cpu", "a control group gives the box one share of the processors", "slowing everything else down",
       {kNo, kNo, kNo}, "outside", kGroups},
      {"network", "a network namespace with lo only and no route", "reaching anything but the gateway",
       {kYes, kYes, kYes}, "inside", ""},
      {"process-tree", "a pid namespace with own processes only", "seeing or signalling others",
       {kYes, kYes, kYes}, "inside", ""},
      {"no-terminal", "no controlling terminal", "typing into the caller's shell (TIOCSTI)",
       {kYes, kYes, kYes}, "inside", ""},
      {"kernel-settings", "kernel settings cannot be opened for writing; no /sys",
       "core_pattern and the like",
       {kYes, kYes, kYes}, "inside", ""},
      {"host-paths", "nothing of the host's tree but what is planned", "reading the user's home and secrets",
       {kYes, kYes, kYes}, "inside", ""},
      {"init-opaque", "the box's init cannot be read or traced", "tampering with deadline and report",
       {kYes, kYes, kYes}, "inside", ""},
      {"landlock", "Landlock rules over files, signals and abstract sockets",
       "what a descriptor or a mistake in a mount would reach; signals to the box's init",
       {kNo, kNo, kNo}, "inside", "run Linux 5.19 or newer with landlock among its LSMs (lsm= on the kernel's command line)",
       ShellNeed::stricter},
      {"execution", "with shell \"none\": nothing but the agent's own programs can be executed",
       "running what was written, loaded or found in the work tree",
       {kYes, kYes, kYes}, "inside", "use --shell sandboxed", ShellNeed::only},
      {"descriptors", "no inherited descriptor but the declared ones", "leaking a host folder or socket",
       {kYes, kYes, kYes}, "inside", ""},
  };
  // clang-format on
  return table;
}

const Control* find_control(std::string_view name) {
  const std::vector<Control>& table = control_table();
  const auto found =
      std::find_if(table.begin(), table.end(), [name](const Control& one) { return one.name == name; });
  return found == table.end() ? nullptr : &*found;
}

Need need_of(const Control& control, Mode mode, const ControlChoices& choices, Shell shell) {
  const auto chosen = choices.find(control.name);
  if (chosen != choices.end()) return chosen->second;
  if (shell == Shell::sandboxed && control.shell == ShellNeed::only) return kNo;  // not in such a box
  if (shell == Shell::none && control.shell != ShellNeed::same) return kYes;
  return control.need[static_cast<std::size_t>(mode)];
}

}  // namespace cofferdam::contract
