#pragma once

#include "init/plan.h"

namespace cofferdam::init {

// The life of the box's PID 1 after "ready": waits for go, starts the program, reaps, enforces the deadline,
// reports, and ends everything. Returning is not possible: the kernel kills the namespace when we exit.
[[noreturn]] void supervise(const plan::Plan& plan, int landlock);

}  // namespace cofferdam::init
