#include "agent/claude.h"
#include "agent/install.h"
#include "base/text.h"
#include "contract/plan_answer.h"

namespace cofferdam::agent {
namespace {

// The CLI looks only at the shape; the gateway strips it and sets the real one.
constexpr const char* kPlaceholderKey = "ANTHROPIC_API_KEY=sk-ant-api03-placeholder";
// With a login the CLI sends a beta flag and asks for other things than with a key: it has to know.
constexpr const char* kPlaceholderLogin = "CLAUDE_CODE_OAUTH_TOKEN=sk-ant-oat01-placeholder";

std::vector<std::string> claude_argv(const contract::InvocationFields& fields, bool steps) {
  // No settings of a user or project and no MCP server but ours: the repository's hooks would run otherwise.
  std::vector<std::string> argv = {
      "/opt/agent/claude",        "-p",      "--output-format", "stream-json",       "--verbose",
      "--no-session-persistence", "--model", fields.model,      "--setting-sources", "",
      "--strict-mcp-config"};
  const auto add = [&argv](const char* name, const std::string& value) {
    argv.emplace_back(name);
    argv.push_back(value);
  };
  if (contract::is_read_only(fields.phase)) {
    add("--permission-mode", "dontAsk");
    add("--tools", "Read,Grep,Glob");
  } else {
    // The box is the boundary; every question would be a denial, since nobody is there to answer.
    add("--permission-mode", "bypassPermissions");
    // Without a shell in the box that tool would only fail.
    const bool shell = fields.shell == contract::Shell::sandboxed;
    add("--tools",
        std::string("Read,Grep,Glob,Edit,Write") + (shell ? ",Bash" : "") + (steps ? ",TodoWrite" : ""));
  }
  if (fields.phase == contract::Phase::planning) add("--json-schema", contract::plan_answer_schema());
  return argv;
}

// A prompt that starts with a slash is a command to the CLI: "/nosuch thing" ends at once with "Unknown
// command", exit code 0 and no request. Behind a newline it is a prompt like any other.
std::string claude_stdin(const std::string& prompt) {
  return starts_with(prompt, "/") ? "\n" + prompt : prompt;
}

}  // namespace

std::vector<std::string> anthropic_env(const LaunchInput& input) {
  return {"ANTHROPIC_BASE_URL=http://127.0.0.1:" + std::to_string(input.gateway_port),
          input.oauth ? kPlaceholderLogin : kPlaceholderKey};
}

Result<Launch> plan_claude_launch(const LaunchInput& input, std::vector<std::string> env) {
  Launch launch;
  launch.agent_dir = input.agents_dir + kClaudePackage;
  launch.version = kClaudeVersion;
  TRY_VOID(check_installed(launch, "Claude Code", {"claude"}, input.agents_dir));
  launch.argv = claude_argv(*input.invocation, input.steps);
  launch.env = std::move(env);
  for (std::string& variable : anthropic_env(input)) launch.env.push_back(std::move(variable));
  // Nothing but the turns themselves leaves, and a dead gateway ends the run within seconds.
  for (const char* variable :
       {"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_AUTOUPDATER=1", "CLAUDE_CODE_MAX_RETRIES=3"}) {
    launch.env.emplace_back(variable);
  }
  // Of its two tools for a list of steps this asks for the one whose calls hold the whole list.
  if (input.steps) launch.env.emplace_back("CLAUDE_CODE_ENABLE_TASKS=0");
  launch.stdin_text = claude_stdin(input.invocation->prompt);
  return launch;
}

}  // namespace cofferdam::agent
