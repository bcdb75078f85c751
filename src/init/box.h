#pragma once

#include "init/plan.h"

namespace cofferdam::init {

// Joins the storage namespace, makes the box's namespaces, and waits for its init. Never returns.
[[noreturn]] void run_box(const plan::Plan& plan);

}  // namespace cofferdam::init
