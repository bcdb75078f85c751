// Outside probes: whether memory, processes and processor of a box are bounded, by the files of the groups
// that the kernel names for its init.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sandbox/controls.h"
#include "sandbox/native/cgroup.h"

namespace cofferdam::sandbox {

struct BoundsQuery {
  std::uint64_t init_pid = 0;
  const BoxGroup* group = nullptr;  // null: the box has none
  std::string why_no_group;
  std::uint64_t process_limit = 0;  // what RLIMIT_NPROC should be
};

// The answers for the controls `memory`, `pids` and `cpu`. Without a group processes are bounded by the limit
// of the box's user namespace.
std::vector<ProbeAnswer> probe_bounds(const BoundsQuery& query);

}  // namespace cofferdam::sandbox
