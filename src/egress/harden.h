// What gateway and broker do before they read a secret.
#pragma once

#include <vector>

#include "base/result.h"

namespace cofferdam::egress {

// Nobody may trace or dump this process, nothing that it starts can gain rights, and of its descriptors only
// the standard ones and `keep` (3, 4, ... without a gap) are left, closed on exec. Ignores SIGPIPE. Dying
// with the supervisor was arranged by spawn().
Status harden_process(const std::vector<int>& keep);

}  // namespace cofferdam::egress
