// The attempt's budgets at the vendor: pure functions over what was allowed and what was spent.
#pragma once

#include <cstddef>
#include <cstdint>

#include "egress/gateway.h"
#include "egress/policy.h"

namespace cofferdam::egress {

struct Spent {
  std::uint64_t requests = 0;  // allowed so far
  std::uint64_t tokens = 0;    // in and out, as the vendor counted them, and what it may have used unheard
  std::uint64_t cost_micros = 0;
};

// Budgets by their names: "tokens", "cost". 0: not limited.
struct Budget {
  std::uint64_t tokens = 0;
  std::uint64_t cost_micros = 0;
};

// The name of the budget that has been exceeded; null: none. Ends the attempt.
const char* overspent(const Budget& budget, const Spent& spent);

// The most that a request may have used beyond what the vendor was heard to say: a byte is at least a token,
// and the output is at most its ceiling. What the box does not wait for is charged to it all the same.
TokenUsage unheard(const TokenUsage& heard, std::uint64_t body_bytes, std::uint64_t max_output);

// Whether one more request may go out: not when a budget is used up (`limit` is set, the rule is its name),
// and not while `in_flight` of them are there already (429 and rule "parallel": worth another try).
Decision decide_spending(const GatewayPolicy& policy, const Spent& spent, std::size_t in_flight);
// The body of the refusal for too many at a time, in the vendor's shape of a rate limit.
std::string parallel_body();

}  // namespace cofferdam::egress
