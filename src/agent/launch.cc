#include "agent/launch.h"

#include "agent/claude.h"

namespace cofferdam::agent {
namespace {

// HUSKY: its hooks write to .git, which is read-only in the box. GIT_OPTIONAL_LOCKS: `git status` would try
// to refresh the index there.
std::vector<std::string> base_env() {
  return {"HOME=/home/agent",    "PATH=/usr/local/bin:/usr/bin:/bin",
          "LANG=C.UTF-8",        "TMPDIR=/tmp",
          "TERM=dumb",           "HUSKY=0",
          "GIT_OPTIONAL_LOCKS=0"};
}

Result<Launch> plan_command_launch(const LaunchInput& input) {
  Launch launch;
  launch.argv = input.invocation->agent.argv;
  launch.env = base_env();
  launch.stdin_text = input.invocation->prompt;
  if (input.invocation->egress == contract::Vendor::anthropic) {
    for (std::string& variable : anthropic_env(input)) launch.env.push_back(std::move(variable));
  }
  return launch;
}

}  // namespace

Result<Launch> plan_launch(const LaunchInput& input) {
  const bool egress = input.invocation->egress != contract::Vendor::none;
  if (egress && input.gateway_port == 0) return make_error(Code::internal, "egress without a gateway");
  const std::string& name = input.invocation->agent.name;
  if (name == "command") return plan_command_launch(input);
  if (name == "claude") return plan_claude_launch(input, base_env());
  return make_error(Code::usage, "unknown agent \"" + name + "\"");
}

}  // namespace cofferdam::agent
