#include "agent/launch.h"

#include <fmt/core.h>
#include <sys/stat.h>

#include "agent/claude.h"
#include "agent/codex.h"
#include "agent/install.h"

namespace cofferdam::agent {
namespace {

// HUSKY: its hooks write to .git, which is read-only in the box. GIT_OPTIONAL_LOCKS: `git status` would try
// to refresh the index there.
std::vector<std::string> base_env(const LaunchInput& input) {
  std::vector<std::string> env = {"HOME=/home/agent",    "PATH=/usr/local/bin:/usr/bin:/bin",
                                  "LANG=C.UTF-8",        "TMPDIR=/tmp",
                                  "TERM=dumb",           "HUSKY=0",
                                  "GIT_OPTIONAL_LOCKS=0"};
  if (input.proxy_port == 0) return env;
  // Both spellings: some programs know only one. What is on loopback, the vendor's gateway first of all, is
  // asked directly.
  const std::string proxy = "=http://127.0.0.1:" + std::to_string(input.proxy_port);
  for (const char* name : {"HTTPS_PROXY", "HTTP_PROXY", "https_proxy", "http_proxy"})
    env.push_back(name + proxy);
  for (const char* name : {"NO_PROXY", "no_proxy"}) env.push_back(std::string(name) + "=127.0.0.1,localhost");
  return env;
}

Result<Launch> plan_command_launch(const LaunchInput& input) {
  Launch launch;
  launch.argv = input.invocation->agent.argv;
  launch.env = base_env(input);
  launch.stdin_text = input.invocation->prompt;
  std::vector<std::string> gateway;
  if (input.invocation->egress == contract::Vendor::anthropic) gateway = anthropic_env(input);
  if (input.invocation->egress == contract::Vendor::openai) gateway = openai_env(input.gateway_port);
  for (std::string& variable : gateway) launch.env.push_back(std::move(variable));
  return launch;
}

bool is_executable(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode) && (info.st_mode & S_IXUSR) != 0;
}

}  // namespace

Status check_installed(const Launch& launch, const std::string& name,
                       const std::vector<std::string>& programs, const std::string& agents_dir) {
  for (const std::string& program : programs) {
    if (is_executable(launch.agent_dir + "/" + program)) continue;
    return make_error(
        Code::missing_tool,
        fmt::format("{} {} is not installed in {}: no {}", name, launch.version, agents_dir, program),
        "run ./quickstart, or `npm ci --ignore-scripts` in the agents folder");
  }
  return {};
}

Result<Launch> plan_launch(const LaunchInput& input) {
  const bool egress = input.invocation->egress != contract::Vendor::none;
  if (egress && input.gateway_port == 0) return make_error(Code::internal, "egress without a gateway");
  const std::string& name = input.invocation->agent.name;
  if (name == "command") return plan_command_launch(input);
  if (name == "claude") return plan_claude_launch(input, base_env(input));
  if (name == "codex") return plan_codex_launch(input, base_env(input));
  return make_error(Code::usage, "unknown agent \"" + name + "\"");
}

}  // namespace cofferdam::agent
