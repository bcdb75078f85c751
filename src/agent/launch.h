// How an agent is started in its box: argv, environment and standard input, built from nothing. Cofferdam's
// own environment, the user's HOME and the target repository have no part in it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "contract/invocation.h"
#include "contract/profile.h"

namespace cofferdam::agent {

struct Launch {
  std::vector<std::string> argv;
  std::vector<std::string> env;  // "NAME=value"
  std::string stdin_text;
  std::string agent_dir;  // host folder to be mounted read-only at /opt/agent; empty: none
  std::vector<contract::HomeFile> home_files;  // to be in HOME before it starts
  std::string version;                         // as pinned in agents/package.json; empty for "command"
};

struct LaunchInput {
  const contract::Invocation& invocation;
  std::string agents_dir;          // holds node_modules
  std::uint16_t gateway_port = 0;  // where the gateway listens inside the box; 0: there is none
  std::uint16_t proxy_port = 0;    // where the allow-list's proxy listens inside the box; 0: there is none
  bool oauth = false;              // the vendor is shown a login, so the agent gets a login's placeholder
  bool steps = false;              // the agent gets the tool in which it keeps a list of its steps
};

// No effect but stat(2) of the agent's binary: Code::missing_tool when it is not installed.
Result<Launch> plan_launch(const LaunchInput& input);

}  // namespace cofferdam::agent
