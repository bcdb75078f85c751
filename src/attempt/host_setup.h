// Slots of a user's, for the verb `host-setup`: see workspace/slots.h.
#pragma once

#include <cstdint>
#include <string>

#include "base/process.h"
#include "base/result.h"

namespace cofferdam::attempt {

struct HostSetup {
  std::string slots_dir;
  UserIds owner;
  unsigned slots = 0;
  std::uint64_t bytes = 0;
  std::uint64_t inodes = 0;
};

// Needs root. Returns how many slots were made; those that were there stay as they are.
Result<unsigned> set_up_host(const HostSetup& setup);
// Needs root. Returns how many were removed. Code::conflict when one is in use.
Result<unsigned> remove_host_setup(const std::string& slots_dir, uid_t user);

}  // namespace cofferdam::attempt
