// Anthropic's Messages API, as far as an agent's turns need it: POST /v1/messages (streaming or not),
// POST /v1/messages/count_tokens, and the vendor's shape of errors for everything else under /v1/.
#pragma once

#include <memory>
#include <string>

#include "oauth.h"
#include "script.h"
#include "vendor_api.h"

namespace cofferdam::standin {

// `expected_key`: the only accepted x-api-key, beside the bearers that `tokens` has given out; empty accepts
// anything, and nothing at all. `tokens` is borrowed and may be null.
std::unique_ptr<VendorApi> make_anthropic_api(Script script, std::string expected_key,
                                              const TokenBook* tokens);

}  // namespace cofferdam::standin
