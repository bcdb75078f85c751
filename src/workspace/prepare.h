// Filling the storage: git metadata of ours and a checkout of the trusted head, made by git inside a box that
// has no network and no program of the repository's. The pack comes in over a descriptor.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "contract/clone.h"
#include "contract/invocation.h"
#include "contract/profile.h"

namespace cofferdam::workspace {

// The box's descriptors 3 and 4 are the pack and its index, opened for reading.
contract::Profile prepare_profile(const contract::Invocation& invocation,
                                  const contract::CloneIdentity& clone, const std::string& branch,
                                  int pack_fd, int index_fd);

// The box prints the tree that the checkout's index has; it must be the head's.
Status check_prepared(std::string_view output, const contract::CloneIdentity& clone);

}  // namespace cofferdam::workspace
