// The login files of the vendors' own CLIs, and the answers of their token endpoints: total functions between
// bytes and values. What is here stays in the broker.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"
#include "contract/json.h"
#include "egress/credential.h"
#include "egress/secret.h"

namespace cofferdam::egress {

enum class LoginShape {
  claude,  // ~/.claude/.credentials.json
  codex,   // ~/.codex/auth.json
};
const char* default_token_url(LoginShape shape);

struct Login {
  CredentialKind kind = CredentialKind::anthropic_oauth;
  Secret access;
  Secret refresh;  // empty: this login cannot be renewed
  std::string account_id;
  std::int64_t expires_at_ms = 0;  // 0: it does not say
};
inline constexpr std::size_t kMaxLoginBytes = 256U << 10U;
// Code::denied when the file holds no login.
Result<Login> parse_login(LoginShape shape, std::string_view file);

// Of a raw token or key: which kind it is, by its look.
CredentialKind kind_of_key(LoginShape shape, bool bearer, std::string_view key);

struct Renewal {
  Secret access;
  Secret refresh;  // empty: the old one stays good
  Secret identity;
  std::int64_t expires_at_ms = 0;
};
// The body of the request for a new token.
Secret renewal_request_body(LoginShape shape, const Secret& refresh);
Result<Renewal> parse_renewal(LoginShape shape, std::string_view answer, Timestamp at);
// The endpoint's own word for a refusal ("invalid_grant"); empty when it gave none that can be shown.
std::string renewal_error(std::string_view answer);
// The file with the renewed tokens in it; everything else in it stays.
Result<Secret> renewed_file(LoginShape shape, std::string_view file, const Renewal& renewal, Timestamp at);

// When a JSON Web Token says that it ends (milliseconds; 0: it does not say). Its signature is not ours to
// check.
std::int64_t jwt_expiry_ms(std::string_view token);
// Overwrites every string in it.
void wipe_json(contract::Json* json);

}  // namespace cofferdam::egress
