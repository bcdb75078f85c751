// What the supervisor hands to the broker over descriptor 3, once: one line of JSON, then the bytes of the
// credential from the environment (if that is the source) up to the end.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "contract/config.h"
#include "egress/https_post.h"
#include "egress/login.h"
#include "egress/secret.h"

namespace cofferdam::egress {

struct BrokerSetup {
  contract::CredentialSource source = contract::CredentialSource::env;
  LoginShape shape = LoginShape::claude;
  bool bearer = false;
  bool basic = false;                // the credential is "user:password", handed out in base64
  std::string file;                  // source file
  std::vector<std::string> command;  // source command
  std::string keyring;               // source keyring
  std::string token_url;
  PostWay way;   // to the token endpoint
  Secret value;  // source env
};

// Looks up a variable of the environment and takes it out of it.
using TakeVariable = std::function<std::optional<Secret>(const std::string& name)>;
// As the configuration and this user's environment have it. For the source env the variable is taken: a
// Claude login's CLAUDE_CODE_OAUTH_TOKEN stands in for an ANTHROPIC_API_KEY that is not there.
Result<BrokerSetup> plan_broker(const contract::VendorConfig& vendor, LoginShape shape,
                                const TakeVariable& take);
// The same for a destination of the allow-list mode.
Result<BrokerSetup> plan_broker(const contract::DestinationCredential& destination, const TakeVariable& take);
// TakeVariable over the process's own environment: what is found is overwritten where it lies (so also in
// /proc/PID/environ) and unset. Before any thread is started.
std::optional<Secret> take_variable(const std::string& name);

Result<Secret> encode_broker_setup(const BrokerSetup& setup);
Result<BrokerSetup> decode_broker_setup(std::string_view bytes);

}  // namespace cofferdam::egress
