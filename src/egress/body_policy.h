// The body of a request is policy too: the vendor must not be made to fetch, run or store anything for the
// box.
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
  std::string body;   // what goes to the vendor: our own serialisation
  bool max_tokens_lowered = false;
};

// Pure. `bytes` is the decoded body of a messages request (Anthropic's Messages API).
BodyVerdict judge_messages_body(const GatewayPolicy& policy, std::string_view bytes);

}  // namespace cofferdam::egress
