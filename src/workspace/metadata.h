// The git metadata of an attempt, as files: complete, ours, and the same whatever the user's repository says.
// Pure.
#pragma once

#include <string>
#include <vector>

#include "contract/clone.h"

namespace cofferdam::workspace {

struct MetadataFile {
  std::string name;  // relative to the git directory; the folders on the way are made
  std::string content;
  bool operator==(const MetadataFile&) const = default;
};

// HEAD is `branch` (without refs/heads/), which is at clone.base. `shallow`: commits whose parents are not
// there.
std::vector<MetadataFile> plan_metadata(const contract::CloneIdentity& clone, const std::string& branch,
                                        const std::vector<std::string>& shallow);

}  // namespace cofferdam::workspace
