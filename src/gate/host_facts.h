// What of this host decides whether a control can be shown at all.
#pragma once

#include <string>

#include "gate/attack.h"

namespace cofferdam::gate {

struct HostFacts {
  bool root = false;
  bool tracing = true;
  bool terminal = true;
  bool route_v4 = false;
  bool route_v6 = false;
  bool core_limit = false;
  bool file_limit = false;
  bool memlock_limit = false;
  bool groups = false;   // as attempt::box_host() has found
  bool landlock = true;  // of ABI 2 or newer
  bool landlock_scope = true;
};
HostFacts read_host_facts();
// Why the need is not met; empty when it is. Pure.
std::string unmet(Need need, const HostFacts& facts);

}  // namespace cofferdam::gate
