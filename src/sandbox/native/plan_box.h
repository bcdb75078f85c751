// Profile -> Plan for the native backend: a pure function.
#pragma once

#include <string>

#include "contract/profile.h"
#include "init/plan.h"
#include "sandbox/native/host_layout.h"

namespace cofferdam::sandbox {

plan::Plan plan_box(const contract::Profile& profile, const HostLayout& layout, const std::string& seccomp);

}  // namespace cofferdam::sandbox
