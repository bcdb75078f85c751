// What a box on this very host and for this very user would have in force, for `cofferdam doctor`.
#pragma once

#include <string>
#include <vector>

#include "attempt/run.h"
#include "base/result.h"
#include "contract/result.h"

namespace cofferdam::attempt {

// Starts a small storage and one box in it and returns what its probes found; nothing is left behind. An
// Error when no box can be set up at all.
Result<std::vector<contract::ControlFact>> probe_host(const Host& host);

// The system-call filter of the boxes as text: the same on every host.
std::string seccomp_listing();

}  // namespace cofferdam::attempt
