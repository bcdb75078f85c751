// The gateway's system calls as an allow-list with a reason per entry, compiled by libseccomp in the
// supervisor; the gateway only loads the bytes.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace cofferdam::egress {

// What one accepted connection, one verified session and one timer need, and nothing that opens, starts or
// looks at anything. Whatever is not named is EPERM.
struct AllowedCall {
  const char* name;
  const char* reason;
};
const std::vector<AllowedCall>& allowed_calls();
// No path of ours leads to these, so whoever calls one is not our code any more: the process ends (SIGSYS).
const std::vector<AllowedCall>& fatal_calls();

// struct sock_filter[] as bytes.
Result<std::string> compile_gateway_filter();

}  // namespace cofferdam::egress
