// The agent CLIs in an image: copies of what npm has installed, held against the lock.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "image/lock_file.h"

namespace cofferdam::image {

// Copies the package's folder below `agents_dir`/node_modules into an image's tree, where its agents are, and
// compares what was copied. Code::missing_tool when it is not installed, Code::denied when it is another one.
Status copy_agent(const std::string& agents_dir, const LockedAgent& agent, const std::string& tree);
// What is installed now: version and integrity as npm has recorded them, the digest of what is there.
// `scratch`: an empty folder of ours.
Result<std::vector<LockedAgent>> resolve_agents(const std::vector<std::string>& names,
                                                const std::string& agents_dir, const std::string& scratch);

}  // namespace cofferdam::image
