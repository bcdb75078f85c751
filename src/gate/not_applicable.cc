#include "gate/attack.h"

namespace cofferdam::gate {

std::vector<NotApplicable> not_applicable() {
  const std::string set_up =
      "of the set-up, in which no process of the agent's runs and nothing of the agent's tree is looked at";
  const std::string collection =
      "of the collection, which happens after the box has gone (tests/unit/handoff)";
  const std::string docker = "of Docker, which this version does not use";
  const std::string supervisor = "an act of the supervisor's, not of a program in a box";
  return {
      {"D3", set_up + "; device nodes are held and compared before they are used"},
      {"D4", set_up},
      {"D5", set_up + "; the proc is a new one of the box's own"},
      {"D6", set_up},
      {"D7", set_up},
      {"D8", set_up},
      {"D9", set_up + "; the profile has no volumes"},
      {"D10", "the plan is a sealed file of bounded lists, read before there is a program (tests/fuzz)"},
      {"D14", "no program of Cofferdam is set-id"},
      {"D16", set_up},
      {"D27", "Cofferdam builds nothing from files of the agent's on the host"},
      {"D28", docker},
      {"D29", docker},
      {"D32",
       "what comes from the host is a mount of its own, and link(2) crosses none with any layer or without"},
      {"D36", "an act from outside: tests/kernel/lifetime_test.cc kills and stops the supervisor"},
      {"D37", collection},
      {"D38", collection},
      {"D39", collection},
      {"D40", collection},
      {"D42", collection},
      {"D43", collection},
      {"C1", "mounts come from the profile, never from a tree"},
      {"C11", supervisor + ": policy is never read from the repository"},
      {"C12", supervisor + ": there is no way to run a program without a box"},
      {"C15", "nothing of ours is in the work tree; its listing before and after is compared by tests/e2e"},
      {"C18", "HOME is a bounded folder of the box's own and has nothing of the host's"},
      {"C21",
       "the sizes are the configuration's ([limits]); a full storage is a cause of its own in the result"},
      {"C23", supervisor + ": the storages are sampled into the record (tests/e2e)"},
      {"C24", supervisor + ": free bytes and inodes are looked at before the start (tests/e2e)"},
      {"C26", "no number of processors is asked for"},
      {"C29", supervisor + ": every count in an invocation and in the configuration is bounded"},
      {"G7", "of boxes without a shell, which the gate does not build (tests/kernel/execution_test.cc)"},
      {"execution",
       "of boxes without a shell, which the gate does not build (tests/kernel/execution_test.cc)"},
      {"pinned-root", "of what the root is made of; the gate's boxes have the host's programs"},
      {"cpu", "a share of the processors, which denies nothing"},
  };
}

}  // namespace cofferdam::gate
