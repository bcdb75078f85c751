// What the supervisor hands to the gateway over descriptor 3, once: one line of JSON with the policy, then
// the bytes of the credential up to the end. The credential is kept out of the JSON so that no parser copies
// it around.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "egress/gateway.h"
#include "egress/origin.h"
#include "egress/secret.h"

namespace cofferdam::egress {

inline constexpr std::size_t kMaxSetupBytes = 60U << 10U;  // fits the buffer of a pipe

struct GatewaySetup {
  GatewayPolicy policy;
  Origin origin;
  Secret credential;  // as credential_lines() writes it
};

// Code::config for a malformed upstream, an empty or unusable credential, or an absurd ceiling.
Result<Secret> encode_setup(const GatewayPolicy& policy, const std::string& credential);
Result<GatewaySetup> decode_setup(std::string_view bytes);

}  // namespace cofferdam::egress
