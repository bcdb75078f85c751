// The control table: every restriction of a box as data. It drives the comparison with what the probes found,
// the result's controls[], `cofferdam doctor` and the table in SECURITY.md.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "contract/result.h"

namespace cofferdam::sandbox {

struct Control {
  const char* name;
  const char* what;       // what is in force
  const char* why;        // what it stops
  bool required;          // a required control that is not proven means that the box does not run
  const char* proven_by;  // "inside", or "outside"
};

const std::vector<Control>& control_table();

// One answer of a probe.
struct ProbeAnswer {
  std::string name;
  bool enforced = false;
  std::string detail;
};

// Every control of the table in its order; one that no probe has answered, or that two have, is not enforced.
std::vector<contract::ControlFact> judge(const std::vector<ProbeAnswer>& answers);
// The first required control that is not enforced; null when all are.
const contract::ControlFact* first_missing(const std::vector<contract::ControlFact>& facts);

// The refusal that a missing required control means.
Error not_in_force(const contract::ControlFact& fact);

}  // namespace cofferdam::sandbox
