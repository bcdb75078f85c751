// What run, plan, ask and review ask for, as the fields of an invocation. Pure.
#pragma once

#include <string>

#include "base/result.h"
#include "cli/options.h"
#include "contract/config.h"
#include "contract/invocation.h"

namespace cofferdam::cli {

// Everything but the clone: flags over configuration over defaults. `prompt` has been read already.
// Code::usage for contradictions, Code::unsupported_host for what this version does not have.
Result<contract::InvocationFields> request_fields(const RunOptions& options, const contract::Config& config,
                                                  std::string prompt);

}  // namespace cofferdam::cli
