// The built-in shape of a plan, which is the product of the planning phase. A plan's proposed commands are
// proposals, never grants.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace cofferdam::contract {

struct PlanStep {
  std::string title;
  std::string detail;
};

struct PlanAnswer {
  std::string summary;
  std::vector<PlanStep> steps;  // 1..100
  std::vector<std::string> files;
  std::vector<std::string> risks;
  std::vector<std::string> commands;  // proposed, as text
};

// The JSON Schema in the vendors' strict subset: every key required, no additional ones.
const std::string& plan_answer_schema();
// Strict: Code::protocol with the JSON path for whatever is not exactly the shape.
Result<PlanAnswer> decode_plan_answer(std::string_view json);

}  // namespace cofferdam::contract
