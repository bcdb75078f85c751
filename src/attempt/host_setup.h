// Slots and control groups of a user's, for the verb `host-setup`: see workspace/slots.h,
// sandbox/native/cgroup.h.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "workspace/slots.h"

namespace cofferdam::attempt {

using HostSetup = workspace::SlotSetup;

// Needs root. Returns how many slots were made; those that were there stay as they are.
Result<unsigned> set_up_host(const HostSetup& setup);
// Needs root. What was handed over stays as it is. Code::unsupported_host: there are none here.
Status hand_over_groups(const std::string& cgroup, const UserIds& owner);
// Needs root. Slots and control groups; returns how many slots were removed. Code::conflict when something is
// in use.
Result<unsigned> remove_host_setup(const std::string& slots_dir, const std::string& cgroup, uid_t user);

}  // namespace cofferdam::attempt
