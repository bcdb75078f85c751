// place() and mend() in a process of the owner's: our own program in another role. It is not killed with us:
// what it has begun it ends.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/process.h"
#include "base/result.h"
#include "handoff/place.h"

namespace cofferdam::handoff {

// `program`: absolute path of cofferdam itself. `content_fd` is borrowed.
Result<std::vector<Obstacle>> place_apart(const std::string& program, const Placement& placement,
                                          int content_fd, const std::optional<UserIds>& run_as);
Result<std::string> mend_apart(const std::string& program, const std::string& git_dir,
                               const std::optional<UserIds>& run_as);

// The process: plan on descriptor 3, contents on 4, the answer on standard output. Its exit code.
Result<int> place_main();

}  // namespace cofferdam::handoff
