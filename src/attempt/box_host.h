// How this host starts its boxes.
#pragma once

#include "attempt/run.h"
#include "sandbox/native/box.h"

namespace cofferdam::attempt {

// Started as root, every box becomes the configured unprivileged user.
sandbox::BoxHost box_host(const Host& host);

}  // namespace cofferdam::attempt
