// What the supervisor hands to the gateway over descriptor 3, once: the policy as JSON.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "egress/gateway.h"
#include "egress/origin.h"

namespace cofferdam::egress {

inline constexpr std::size_t kMaxSetupBytes = 60U << 10U;  // fits the buffer of a pipe

struct GatewaySetup {
  GatewayPolicy policy;
  Origin origin;
};

// Code::config for a malformed upstream or an absurd ceiling.
Result<std::string> encode_setup(const GatewayPolicy& policy);
Result<GatewaySetup> decode_setup(std::string_view bytes);

}  // namespace cofferdam::egress
