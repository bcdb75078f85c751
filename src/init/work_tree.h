// The writable work tree as an overlay: a cached tree below, bounded storage above.
#pragma once

#include <string>

#include "init/plan.h"

namespace cofferdam::init {

// Mounts it at `target`, a folder in the storage, once a probe on the same storage has shown that folders of
// the lower layer can be emptied, removed and made again there. Otherwise nothing is mounted, and the reason
// is returned. In the calling process' own mount namespace; changes the working directory and back.
std::string mount_work_tree(const plan::Op& op, const std::string& target);

}  // namespace cofferdam::init
