// What would hold the work of an attempt on this host, for `doctor`: nothing is made or taken.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "contract/config.h"

namespace cofferdam::attempt {

struct HostStorage {
  std::string kind;      // as in the result: "image", "slot" or "tmpfs"
  unsigned slots = 0;    // of the caller's, whatever they are like
  unsigned fitting = 0;  // of those, within the limits and mounted
  unsigned free = 0;     // of those, in use by nobody
  std::uint64_t slot_bytes = 0;
};

Result<HostStorage> look_at_storage(const contract::Config& config);

}  // namespace cofferdam::attempt
