// An attempt that another process has admitted, seen from a caller who asks for the same once more.
#pragma once

#include <string>

#include "attempt/run.h"
#include "base/result.h"
#include "contract/result.h"

namespace cofferdam::attempt {

// Tells every event of the attempt from its first one, until it has its result, and returns that. A request
// to cancel is passed on to the attempt's supervisor. An attempt whose supervisor has gone is recovered.
Result<contract::ResultRecord> follow(const Host& host, const std::string& attempt_id,
                                      const Controls& controls);

}  // namespace cofferdam::attempt
