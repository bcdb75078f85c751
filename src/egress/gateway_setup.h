// What the supervisor hands to the gateway over descriptor 3, once: the policy as JSON.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "egress/gateway.h"
#include "egress/origin.h"

namespace cofferdam::egress {

inline constexpr std::size_t kMaxSetupBytes = 60U << 10U;  // fits the buffer of a pipe

struct GatewaySetup {
  GatewayPolicy policy;
  Origin origin;  // of the vendor, if there is one
  std::optional<Origin> proxy;
};

// Every host that has to be looked up, and every port that is connected to.
Result<std::vector<std::string>> hosts_to_resolve(const GatewayPolicy& policy);
std::vector<std::uint16_t> ports_to_reach(const GatewaySetup& setup);

// Code::config for a malformed upstream, a tool that cannot be opted in to, or an absurd ceiling.
Result<std::string> encode_setup(const GatewayPolicy& policy);
Result<GatewaySetup> decode_setup(std::string_view bytes);

}  // namespace cofferdam::egress
