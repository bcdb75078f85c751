// The keep box: the files of a work tree that cannot become a commit, as an archive for people to look at.
// Nothing of Cofferdam reads it.
#pragma once

#include <chrono>
#include <cstdint>

#include "contract/profile.h"

namespace cofferdam::handoff {

struct KeepInput {
  bool overlay = false;  // then only the upper layer: removed files are character devices there
  std::uint64_t scratch_bytes = 64U << 20U;
  std::uint64_t scratch_inodes = 1024;
  std::uint64_t work_bytes = 0;  // what the work storage is bounded to; the archive may be a little larger
  std::uint64_t work_inodes = 0;
  std::chrono::milliseconds deadline = std::chrono::minutes(10);
  std::chrono::milliseconds grace = std::chrono::seconds(2);
  int archive_fd = -1;  // borrowed, open for writing
};

contract::Profile keep_profile(const KeepInput& input);

}  // namespace cofferdam::handoff
