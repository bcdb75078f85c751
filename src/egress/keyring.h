// The kernel's keyring: keyrings(7), request_key(2), keyctl(2).
#pragma once

#include <string>

#include "base/result.h"
#include "egress/secret.h"

namespace cofferdam::egress {

// The payload of the "user" key of this description in the user's keyring or the session's. Code::not_found
// when there is none that this process may read; Code::unsupported_host without keyrings.
Result<Secret> read_user_key(const std::string& description);

}  // namespace cofferdam::egress
