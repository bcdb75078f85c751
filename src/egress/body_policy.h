// The body of a request is policy too: the vendor must not be made to fetch, run or store anything for the
// box. What passes is data (egress/body_table.h); everything else is denied by its place.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "egress/gateway.h"
#include "egress/policy.h"

namespace cofferdam::egress {

inline constexpr std::size_t kMaxBodyBytes = 32U << 20U;
// Tool schemas and tool inputs nest; deeper than this nobody asks in earnest.
inline constexpr std::size_t kMaxBodyDepth = 64;

struct BodyVerdict {
  Decision decision;  // relay, or deny with rule and JSON path
  std::string body;   // what goes to the vendor: our own serialisation, members in their order
  bool max_tokens_lowered = false;
  std::uint64_t max_output = 0;  // that the vendor was told, or ours where it cannot be told
};

// Pure. `bytes` is the decoded body of a request to the policy's vendor: Anthropic's Messages API or OpenAI's
// Responses API.
BodyVerdict judge_body(const GatewayPolicy& policy, std::string_view bytes);

}  // namespace cofferdam::egress
