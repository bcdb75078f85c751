// How this host starts its boxes.
#pragma once

#include <string>

#include "attempt/run.h"
#include "base/result.h"
#include "sandbox/native/box.h"

namespace cofferdam::attempt {

// Started as root, every box becomes the configured unprivileged user. Boxes have control groups where this
// host lets us have some, in one group that bears `name` and goes with the last copy of what is returned.
sandbox::BoxHost box_host(const Host& host, const std::string& name);

// Ends and removes the control groups of attempts whose supervisor has gone.
Status sweep_groups(const Host& host);

}  // namespace cofferdam::attempt
