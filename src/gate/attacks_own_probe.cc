// Before a program starts, each box probes itself (init/probes.cc). A probe that cannot fail proves nothing:
// here each is asked in a box that lacks what it looks for.
#include "gate/attack.h"

namespace cofferdam::gate {

void add_own_probes(std::vector<Attack>* out) {
  struct Probe {
    const char* control;
    std::vector<std::string> layers;
    const char* classes = "";
    Setting setting = Setting::agent;
    Need need = Need::nothing;
  };
  const std::vector<Probe> probes = {
      {"host-root-unmapped", {kHostRootUnmapped}, "D19", Setting::agent, Need::root},
      {"identity", {"identity"}},
      {"capabilities", {"capabilities"}, "C8"},
      {"no-new-privs", {"no-new-privs"}, "C8"},
      {"seccomp", {"seccomp"}},
      {"socket-families", {"seccomp"}},
      {"no-user-namespaces", {"userns-limit"}},
      {"root-read-only", {"read-only-root"}, "C9"},
      {"work-tree", {"read-only-work"}, "", Setting::planning},
      {"git-metadata", {"read-only-metadata"}},
      {"output", {"no-output"}},
      {"storage-bound", {kStorageBound}},
      {"scratch-bound", {"scratch-bound"}},
      {"network", {"own-network"}, "C13 C14 C28", Setting::agent, Need::route},
      {"process-tree", {"own-proc"}},
      {"no-terminal", {"session"}},
      {"kernel-settings", {"read-only-proc", "capabilities"}},
      {"host-paths", {"private-root"}},
      {"init-opaque", {"opaque-init", "landlock"}},
      {"landlock", {"landlock"}},
  };
  for (const Probe& probe : probes) {
    const std::string control = probe.control;
    out->push_back({"unseen-" + control, control, probe.classes, probe.layers,
                    "go on although the box lacks " + control, "own-probe " + control, probe.setting,
                    probe.need});
  }
}

}  // namespace cofferdam::gate
