// What the host must have free before a storage is made, so that an attempt that fills its own cannot take
// the host's last bytes or inodes with it.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"

namespace cofferdam::workspace {

struct Room {
  std::uint64_t total = 0;
  std::uint64_t free = 0;
};

// Whether `wanted` fits and leaves a twentieth of the whole, at most `most_left`, to everybody else. Pure.
bool fits(const Room& room, std::uint64_t wanted, std::uint64_t most_left);

// Code::exhausted, with what to do, when the disk of `folder` has no room for that many bytes more.
Status check_disk(const std::string& folder, std::uint64_t bytes);
// The same of the host's memory.
Status check_memory(std::uint64_t bytes);

}  // namespace cofferdam::workspace
