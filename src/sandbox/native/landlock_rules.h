// The Landlock rules of a box: which places may be written, and what may be executed. A second layer over the
// mounts, and the only one that names programs. A pure function. Of `plan` only `without` is looked at: where
// the gate leaves a mount's restriction out, these rules must not hide that.
#pragma once

#include <vector>

#include "contract/profile.h"
#include "init/plan.h"
#include "sandbox/native/host_layout.h"

namespace cofferdam::sandbox {

std::vector<plan::PathRule> landlock_rules(const contract::Profile& profile, const HostLayout& layout,
                                           const plan::Plan& plan);

}  // namespace cofferdam::sandbox
