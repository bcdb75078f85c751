// The gateway gives its own rights away: before it reads anything hostile it can open nothing, start nothing
// and connect to nothing but TCP on the ports that its policy names.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/process.h"
#include "base/result.h"

namespace cofferdam::egress {

// What is in force; the kernel decides about Landlock, so it is on record. Everything else is required.
struct Confinement {
  int landlock_abi = 0;        // 0: this kernel has none
  bool ports_limited = false;  // connecting is held to the policy's ports (Landlock ABI 4)
};

// Drops root and every group for `user`; the death with the parent is arranged again.
Status become(const UserIds& user);
struct Confines {
  std::string filter;                // what compile_gateway_filter() yields
  std::vector<std::uint16_t> ports;  // that may be connected to
  std::uint64_t descriptors = 0;     // open at a time
  std::uint64_t file_bytes = 0;      // no file can grow beyond it
};
// Bounds, capabilities, Landlock and the system-call filter, in this order; nothing can be undone. Only in a
// process with one thread: Landlock holds per thread.
Result<Confinement> confine(const Confines& confines);

}  // namespace cofferdam::egress
