#include "sandbox/controls.h"

#include <fmt/core.h>

#include "base/text.h"

namespace cofferdam::sandbox {

const std::vector<Control>& control_table() {
  static const std::vector<Control> table = {
      {"host-root-unmapped", "the host's uid 0 is not in the box's id map", "writing root-owned kernel files",
       true, "outside"},
      {"identity", "one unprivileged uid and gid", "acting as another user", true, "inside"},
      {"supplementary-groups", "no supplementary groups", "reaching files through a group of the caller's",
       false, "inside"},
      {"capabilities", "all five capability sets are empty", "mounts, raw sockets, tracing others", true,
       "inside"},
      {"no-new-privs", "no_new_privs is set", "set-id programs and file capabilities", true, "inside"},
      {"seccomp", "a system-call filter is loaded and answers", "kernel interfaces that no build needs", true,
       "inside"},
      {"socket-families", "only UNIX, INET, INET6 and route NETLINK sockets",
       "VSOCK to the host, kernel crypto sockets", true, "inside"},
      {"no-user-namespaces", "no further user namespace can be made",
       "regaining capabilities, unbounded mounts", true, "inside"},
      {"root-read-only", "the root file system is read-only", "planting files outside the bounded places",
       true, "inside"},
      {"work-tree", "the work tree is writable or not, as the phase says", "changes in a read-only phase",
       true, "inside"},
      {"git-metadata", "git metadata is read-only and not the agent's",
       "hooks and configuration for a later git", true, "inside"},
      {"output", "the way out is not in the agent's box", "forging the result", true, "inside"},
      {"storage-bound", "the work storage is bounded in bytes and inodes", "filling the host", true,
       "inside"},
      {"scratch-bound", "HOME, /tmp and /dev/shm are bounded and ephemeral",
       "filling the host, leaving things behind", true, "inside"},
      {"network", "a network namespace with lo only and no route", "reaching anything but the gateway", true,
       "inside"},
      {"process-tree", "a pid namespace with own processes only", "seeing or signalling others", true,
       "inside"},
      {"no-terminal", "no controlling terminal", "typing into the caller's shell (TIOCSTI)", true, "inside"},
      {"kernel-settings", "kernel settings cannot be opened for writing; no /sys",
       "core_pattern and the like", true, "inside"},
      {"host-paths", "nothing of the host's tree but what is planned", "reading the user's home and secrets",
       true, "inside"},
      {"init-opaque", "the box's init cannot be read or traced", "tampering with deadline and report", true,
       "inside"},
      {"descriptors", "no inherited descriptor but the declared ones", "leaking a host folder or socket",
       true, "inside"},
  };
  return table;
}

std::vector<contract::ControlFact> judge(const std::vector<ProbeAnswer>& answers) {
  std::vector<contract::ControlFact> facts;
  for (const Control& control : control_table()) {
    contract::ControlFact fact;
    fact.name = control.name;
    fact.required = control.required;
    fact.proof = "no probe has answered";
    int count = 0;
    for (const ProbeAnswer& answer : answers) {
      if (answer.name != control.name) continue;
      ++count;
      fact.enforced = count == 1 && answer.enforced;
      fact.proof = fmt::format("{} probe: {}", control.proven_by, printable(answer.detail, 300));
    }
    facts.push_back(std::move(fact));
  }
  return facts;
}

const contract::ControlFact* first_missing(const std::vector<contract::ControlFact>& facts) {
  for (const contract::ControlFact& fact : facts) {
    if (fact.required && !fact.enforced) return &fact;
  }
  return nullptr;
}

Error not_in_force(const contract::ControlFact& fact) {
  return make_error(Code::unsupported_host,
                    fmt::format("control {} is not in force: {}", fact.name, fact.proof),
                    "run 'cofferdam doctor'");
}

}  // namespace cofferdam::sandbox
