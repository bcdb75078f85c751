// What the supervisor hands to the gateway over descriptor 3, once: one line of JSON with the policy, then
// the bytes of the credential up to the end. The credential is kept out of the JSON so that no parser copies
// it around.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "egress/gateway.h"
#include "egress/origin.h"
#include "egress/secret.h"

namespace cofferdam::egress {

inline constexpr std::size_t kMaxSetupBytes = 60U << 10U;  // fits the buffer of a pipe

struct GatewaySetup {
  GatewayPolicy policy;
  Origin origin;
  std::optional<Origin> proxy;
  Secret credential;  // as credential_lines() writes it
};

// Every host that has to be looked up, and every port that is connected to.
Result<std::vector<std::string>> hosts_to_resolve(const GatewayPolicy& policy);
std::vector<std::uint16_t> ports_to_reach(const GatewaySetup& setup);

// Code::config for a malformed upstream, an empty or unusable credential, or an absurd ceiling.
Result<Secret> encode_setup(const GatewayPolicy& policy, const std::string& credential);
Result<GatewaySetup> decode_setup(std::string_view bytes);

}  // namespace cofferdam::egress
