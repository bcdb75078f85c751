// What is looked for in a change, and what becomes of it: one table, which the configuration can turn per
// rule, and which docs/handoff.md shows.
//
// Thread rules: pure functions.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace cofferdam::contract {

enum class FindingAction {
  reported,  // it is part of the change
  dropped,   // it is not
  refused,   // it is part of the kept change, which is not published
};
const char* finding_action_name(FindingAction action);

struct FindingRule {
  const char* name;
  FindingAction action;  // by default
  bool free;             // the configuration may choose between reported and refused
  const char* what;      // one line for people
};
const std::vector<FindingRule>& finding_rules();
const FindingRule* find_rule(std::string_view name);  // null: there is none of that name

// What the configuration says otherwise, by the rule's name.
using FindingChoices = std::map<std::string, FindingAction>;
FindingAction action_of(const FindingRule& rule, const FindingChoices& choices);

}  // namespace cofferdam::contract
