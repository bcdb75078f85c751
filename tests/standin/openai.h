// OpenAI's Responses API, as far as an agent's turns need it: POST /v1/responses (streaming or not; also as
// /backend-api/codex/responses, where the ChatGPT login has it), GET of the same with an Upgrade, which is
// answered 426, GET /v1/models, and the vendor's shape of errors for everything else below those.
#pragma once

#include <memory>
#include <string>

#include "oauth.h"
#include "script.h"
#include "vendor_api.h"

namespace cofferdam::standin {

// `expected_key`: the only accepted bearer, beside the tokens that `tokens` has given out; empty accepts
// anything, and nothing at all. `tokens` is borrowed and may be null.
std::unique_ptr<VendorApi> make_openai_api(Script script, std::string expected_key, const TokenBook* tokens);

}  // namespace cofferdam::standin
