#include "sandbox/controls.h"

#include <fmt/core.h>

#include "base/text.h"

namespace cofferdam::sandbox {

std::vector<contract::ControlFact> judge(const std::vector<ProbeAnswer>& answers,
                                         const Requirements& requirements, contract::Shell shell) {
  std::vector<contract::ControlFact> facts;
  for (const contract::Control& control : contract::control_table()) {
    // What a box does not promise is not in its result, where it could only be misread.
    if (control.shell == contract::ShellNeed::only && shell != contract::Shell::none) continue;
    contract::ControlFact fact;
    fact.name = control.name;
    fact.required = contract::need_of(control, requirements.mode, requirements.choices, shell) ==
                    contract::Need::required;
    fact.proof = "no probe has answered";
    int count = 0;
    for (const ProbeAnswer& answer : answers) {
      if (answer.name != control.name) continue;
      ++count;
      fact.enforced = count == 1 && answer.enforced;
      fact.proof = fmt::format("{} probe: {}", control.proven_by, printable(answer.detail, 300));
    }
    facts.push_back(std::move(fact));
  }
  return facts;
}

const contract::ControlFact* first_missing(const std::vector<contract::ControlFact>& facts) {
  for (const contract::ControlFact& fact : facts) {
    if (fact.required && !fact.enforced) return &fact;
  }
  return nullptr;
}

Error not_in_force(const contract::ControlFact& fact) {
  const contract::Control* control = contract::find_control(fact.name);
  const std::string fix =
      control == nullptr || control->fix[0] == '\0' ? "run 'cofferdam doctor'" : control->fix;
  return make_error(
      Code::unsupported_host, fmt::format("control {} is not in force: {}", fact.name, fact.proof),
      fmt::format("{}; or set {} = \"best-effort\" in [controls] of the configuration", fix, fact.name));
}

}  // namespace cofferdam::sandbox
