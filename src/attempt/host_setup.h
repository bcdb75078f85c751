// Slots of a user's, for the verb `host-setup`: see workspace/slots.h.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "workspace/slots.h"

namespace cofferdam::attempt {

using HostSetup = workspace::SlotSetup;

// Needs root. Returns how many slots were made; those that were there stay as they are.
Result<unsigned> set_up_host(const HostSetup& setup);
// Needs root. Returns how many were removed. Code::conflict when one is in use.
Result<unsigned> remove_host_setup(const std::string& slots_dir, uid_t user);

}  // namespace cofferdam::attempt
