// Checking the trusted head out, by git inside a box that has no network and no program of the repository's:
// into an attempt's own storage, or into a folder of the vault that becomes a cached tree.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "contract/clone.h"
#include "contract/invocation.h"
#include "contract/profile.h"

namespace cofferdam::workspace {

contract::Profile prepare_profile(const contract::Invocation& invocation,
                                  const contract::CloneIdentity& clone);

// What a cached tree may take of the host.
struct TreeBounds {
  std::uint64_t bytes = 0;
  std::uint64_t files = 0;
};
// The same into a cached tree: looks first whether it fits, reads every file once more afterwards, and writes
// the index to `index_fd` (borrowed until the box has started).
contract::Profile make_tree_profile(const contract::CloneIdentity& clone, const TreeBounds& bounds,
                                    int index_fd);

// Empties the work tree, which is then a slot as the attempt before has left it.
contract::Profile empty_profile();

// The box prints the tree that the checkout's index has; it must be the head's.
Status check_prepared(std::string_view output, const contract::CloneIdentity& clone);

}  // namespace cofferdam::workspace
