// The first line that a helper process of ours says to the supervisor: that it is ready, or why it is not.
#pragma once

#include <chrono>
#include <string>

#include "base/process.h"
#include "base/result.h"
#include "contract/json.h"

namespace cofferdam::egress {

// {"error": ..., "hint": ..., "code": ...}, with a newline.
std::string encode_start_error(const Error& error);

// Waits for the line of `child` on `fd` and reads not a byte beyond it. The JSON object, or the error that it
// says, or that the process `what` ended or did not start in time.
Result<contract::Json> read_first_line(const std::string& what, int fd, Child* child,
                                       std::chrono::milliseconds limit);

}  // namespace cofferdam::egress
