// Runs acts in one box of a kind.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "gate/canary.h"
#include "gate/gate.h"
#include "sandbox/native/box.h"

namespace cofferdam::gate {

// The outcome of every attack by its id. An Error when the box could not be made or did not come to its end.
Result<std::map<std::string, Outcome>> run_in_box(const sandbox::BoxHost& host, const Canary& canary,
                                                  const BoxKind& kind, const std::vector<Attack>& attacks);

}  // namespace cofferdam::gate
