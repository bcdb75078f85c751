// Slots: disks that root has made once for a user who is not, each an ext4 file system of fixed bytes and
// inodes. Below the folder of all slots a user's are in `<uid>/`:
//   N.img    the image; root's
//   N        where it is mounted (nosuid, nodev); what is in it is the user's
//   N.lock   locked (flock(2)) by the supervisor and the keeper that use the slot; the user's
// One attempt has a slot at a time, and nobody ever shares one. It is emptied before it is used again, in a
// box of the user's namespace: what an agent left there is walked by no process of the host.
#pragma once

#include <cstdint>
#include <string>

#include "base/fd.h"
#include "base/process.h"
#include "base/result.h"

namespace cofferdam::workspace {

struct Slot {
  std::string folder;  // empty: none
  UniqueFd lock;
};

// Takes a slot of the user's that has no more than these bounds. Without a folder when there is none of that
// kind at all; Code::exhausted when every one is in use.
Result<Slot> take_slot(const std::string& slots_dir, uid_t user, std::uint64_t bytes, std::uint64_t inodes);

struct SlotCount {
  unsigned all = 0;
  unsigned fitting = 0;     // mounted, and within the bounds
  unsigned free = 0;        // of those, in use by nobody
  std::uint64_t bytes = 0;  // of the smallest fitting one
};
// For people: whoever takes one has it by take_slot().
Result<SlotCount> count_slots(const std::string& slots_dir, uid_t user, std::uint64_t bytes,
                              std::uint64_t inodes);

struct SlotSetup {
  std::string slots_dir;
  UserIds owner;
  unsigned count = 0;
  std::uint64_t bytes = 0;
  std::uint64_t inodes = 0;
};
// As root: makes what is missing of slots 1 to `count` and mounts what is not mounted, so that it can be
// called again, also after a boot. A slot that is there keeps its bounds. Returns how many were made.
Result<unsigned> set_up_slots(const SlotSetup& setup);
// As root: unmounts and removes all slots of that user. Code::conflict, before anything is removed, when one
// is in use. Returns how many there were.
Result<unsigned> remove_slots(const std::string& slots_dir, uid_t user);

}  // namespace cofferdam::workspace
