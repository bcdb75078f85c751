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

// What a gateway may be allowed to hold open at most; a descriptor bound beyond it would bound nothing.
inline constexpr std::uint64_t kMostConnections = 4096;
inline constexpr std::size_t kMaxSetupBytes = 60U << 10U;  // fits the buffer of a pipe

struct GatewaySetup {
  GatewayPolicy policy;
  Origin origin;  // of the vendor, if there is one
  std::optional<Origin> proxy;
};

// Every host that has to be looked up, and every port that is connected to.
Result<std::vector<std::string>> hosts_to_resolve(const GatewayPolicy& policy);
std::vector<std::uint16_t> ports_to_reach(const GatewaySetup& setup);
// How many descriptors the gateway can need: two for each connection, and what does not grow with them.
std::uint64_t descriptors_needed(const GatewayPolicy& policy);

// Code::config for a malformed upstream, a tool that cannot be opted in to, or an absurd ceiling.
Result<std::string> encode_setup(const GatewayPolicy& policy);
Result<GatewaySetup> decode_setup(std::string_view bytes);

}  // namespace cofferdam::egress
