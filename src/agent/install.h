// Whether an agent is installed. Private to src/agent.
#pragma once

#include <string>
#include <vector>

#include "agent/launch.h"

namespace cofferdam::agent {

// Code::missing_tool unless every program is an executable file of the launch's folder. `name` and the
// launch's version say to people what is missing.
Status check_installed(const Launch& launch, const std::string& name,
                       const std::vector<std::string>& programs, const std::string& agents_dir);

}  // namespace cofferdam::agent
