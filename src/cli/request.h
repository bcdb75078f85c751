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

// What the attempt may reach beside the vendor: the destinations that the configuration's section of this
// repository names, then those of --allow-host. One that is configured comes with its own ranges and bounds.
// `repository` is canonical.
Result<std::vector<contract::Destination>> request_destinations(const RunOptions& options,
                                                                const contract::Config& config,
                                                                const std::string& repository);

}  // namespace cofferdam::cli
