// The Landlock rules of a box: which places may be written, and what may be executed. A second layer over the
// mounts, and the only one that names programs. A pure function.
#pragma once

#include <vector>

#include "contract/profile.h"
#include "init/plan.h"
#include "sandbox/native/host_layout.h"

namespace cofferdam::sandbox {

std::vector<plan::PathRule> landlock_rules(const contract::Profile& profile, const HostLayout& layout);

}  // namespace cofferdam::sandbox
