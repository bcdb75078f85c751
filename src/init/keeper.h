#pragma once

#include "init/plan.h"

namespace cofferdam::init {

// The storage namespace's holder: makes a user and a mount namespace, mounts the bounded storage in it, says
// "ready", and waits until it is released or its supervisor has been gone for the plan's linger time.
[[noreturn]] void run_keeper(const plan::Plan& plan);

}  // namespace cofferdam::init
