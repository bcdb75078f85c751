// What gateway, broker and resolver do before they read a secret.
#pragma once

#include <vector>

#include "base/result.h"

namespace cofferdam::egress {

// Nobody may trace or dump this process, nothing that it starts can gain rights, and of its descriptors only
// the standard ones and 3 to `last` are left, closed on exec; those of `optional` may be absent. Ignores
// SIGPIPE. Dying with the supervisor was arranged by spawn().
Status harden_process(int last, const std::vector<int>& optional = {});

}  // namespace cofferdam::egress
