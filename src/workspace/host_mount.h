// Mounts that stand in no tree yet, made by a supervisor that is root for a keeper that is not: it cannot
// walk to a closed state folder, nor mount a disk. A descriptor is all there is of one: whoever has the last,
// ends it, and nothing is ever seen in the host's mount table.
#pragma once

#include <string>

#include "base/fd.h"
#include "base/result.h"

namespace cofferdam::workspace {

// A copy of the mount that `folder` is in, rooted there: open_tree(2). Never honours set-id bits or devices.
Result<UniqueFd> detached_mount(const std::string& folder, bool read_only);
// An ext4 file system on a block device, likewise: fsmount(2).
Result<UniqueFd> detached_ext4(const std::string& device);

}  // namespace cofferdam::workspace
