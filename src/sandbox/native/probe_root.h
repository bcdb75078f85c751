// From outside: whether a box's root is the pinned tree that it should be.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string_view>

#include "contract/profile.h"
#include "sandbox/controls.h"

namespace cofferdam::sandbox {

// In force when /usr in the mount table of the box's PID 1 is a read-only part of the storage's image, and
// that image shows the very files of the tree that was verified. `launcher` is in the storage's mount
// namespace.
ProbeAnswer probe_root(std::uint64_t init, pid_t launcher, const contract::Profile& profile);

// The device ("0:57") of what is mounted at /usr in a mount table, when it is the folder /usr of that file
// system and read-only; empty otherwise. The last line counts: it covers those before it.
std::string usr_device(std::string_view mountinfo);

}  // namespace cofferdam::sandbox
