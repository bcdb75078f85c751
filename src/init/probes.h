#pragma once

#include "init/plan.h"

namespace cofferdam::init {

// Runs every inside probe in a child that has exactly the program's restrictions and reports each one.
// A probe that cannot answer is reported as not enforced; a missing one is the supervisor's to notice.
void run_probes(const plan::Plan& plan, int landlock);

}  // namespace cofferdam::init
