#include "egress/budget.h"

#include <algorithm>
#include <string>

#include "contract/json.h"

namespace cofferdam::egress {

using contract::Json;

const char* overspent(const Budget& budget, const Spent& spent) {
  if (budget.tokens > 0 && spent.tokens > budget.tokens) return "tokens";
  if (budget.cost_micros > 0 && spent.cost_micros > budget.cost_micros) return "cost";
  return nullptr;
}

TokenUsage unheard(const TokenUsage& heard, std::uint64_t body_bytes, std::uint64_t max_output) {
  TokenUsage out;
  if (heard.input == 0) out.input = body_bytes;
  out.output = max_output - std::min(max_output, heard.output);
  return out;
}

Decision decide_spending(const GatewayPolicy& policy, const Spent& spent, std::size_t in_flight) {
  Decision decision = decide_budget(policy, spent.requests);
  if (decision.action == Action::deny) return decision;
  const char* used_up = nullptr;
  if (policy.max_cost_micros > 0 && spent.cost_micros >= policy.max_cost_micros) used_up = "cost";
  if (policy.total_tokens > 0 && spent.tokens >= policy.total_tokens) used_up = "tokens";
  if (used_up != nullptr) {
    decision = deny(used_up);
    decision.limit = true;
  } else if (policy.max_parallel > 0 && in_flight >= policy.max_parallel) {
    decision = deny("parallel", {}, 429);
  }
  return decision;
}

std::string parallel_body() {
  const Json own = {{"denied", true}, {"rule", "parallel"}, {"retry", true}};
  const Json error = {{"type", "rate_limit_error"},
                      {"message", "Cofferdam: too many requests at a time; try again when one has ended"}};
  return contract::canonical(Json{{"type", "error"}, {"error", error}, {"cofferdam", own}});
}

}  // namespace cofferdam::egress
