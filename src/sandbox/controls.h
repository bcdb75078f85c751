// What the probes of one box found, held against what is required of it.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "contract/controls.h"
#include "contract/result.h"

namespace cofferdam::sandbox {

// What is required of the boxes of one attempt.
struct Requirements {
  contract::Mode mode = contract::Mode::undelegated;
  contract::ControlChoices choices;
};

// One answer of a probe.
struct ProbeAnswer {
  std::string name;
  bool enforced = false;
  std::string detail;
};

// Every control of the table in its order; one that no probe has answered, or that two have, is not enforced.
std::vector<contract::ControlFact> judge(const std::vector<ProbeAnswer>& answers,
                                         const Requirements& requirements,
                                         contract::Shell shell = contract::Shell::sandboxed);
// The first required control that is not enforced; null when all are.
const contract::ControlFact* first_missing(const std::vector<contract::ControlFact>& facts);

// The refusal that a missing required control means.
Error not_in_force(const contract::ControlFact& fact);

}  // namespace cofferdam::sandbox
