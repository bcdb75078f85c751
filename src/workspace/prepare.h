// Filling the storage: git metadata of ours and a checkout of the trusted head, made by git inside a box that
// has no network and no program of the repository's. The packs come in over a descriptor.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "contract/clone.h"
#include "contract/invocation.h"
#include "contract/profile.h"

namespace cofferdam::workspace {

// Every pack and its index behind one another, in a file without a name in `folder`.
struct GatheredPacks {
  UniqueFd file;
  std::string sizes;  // in bytes, with spaces between them
};
Result<GatheredPacks> gather_packs(const contract::BasePacks& packs, const std::string& folder);

// The box's descriptor 3 is the file of gather_packs(), at its beginning.
contract::Profile prepare_profile(const contract::Invocation& invocation,
                                  const contract::CloneIdentity& clone, const std::string& branch,
                                  int packs_fd, const std::string& sizes,
                                  const std::vector<std::string>& shallow);

// The box prints the tree that the checkout's index has; it must be the head's.
Status check_prepared(std::string_view output, const contract::CloneIdentity& clone);

}  // namespace cofferdam::workspace
