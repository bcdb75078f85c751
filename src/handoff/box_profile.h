// What the boxes of the handoff have in common: the metadata read-only, no agent, bounds of their own.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "contract/profile.h"

namespace cofferdam::handoff {

// `Input` has scratch_bytes, scratch_inodes, work_bytes, work_inodes, deadline and grace.
template <typename Input>
contract::Profile box_profile(const char* kind, std::vector<std::string> argv, const Input& input) {
  contract::Profile profile;
  profile.kind = kind;
  profile.argv = std::move(argv);
  profile.env = {"PATH=/usr/bin:/bin", "HOME=/nonexistent", "LC_ALL=C"};
  profile.metadata = contract::Access::read_only;
  profile.scratch_bytes = input.scratch_bytes;
  profile.scratch_inodes = input.scratch_inodes;
  profile.work_bytes = input.work_bytes;
  profile.work_inodes = input.work_inodes;
  profile.deadline = input.deadline;
  profile.grace = input.grace;
  return profile;
}

}  // namespace cofferdam::handoff
