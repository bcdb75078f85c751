#include <fmt/core.h>

#include "agent/codex.h"
#include "agent/install.h"
#include "contract/plan_answer.h"

namespace cofferdam::agent {
namespace {

constexpr const char* kPlaceholderKey = "sk-placeholder";
constexpr const char* kSchemaName = "plan-answer.schema.json";

// Every setting that differs from the CLI's default, with its reason. The CLI is told to refuse keys that it
// does not know. The provider has no key at all: the CLI then sends no Authorization, and the gateway sets
// it.
constexpr const char* kConfig = R"(model_provider = "box"
# Nobody is there to be asked, and the box is the boundary: a sandbox inside it cannot be made and is not needed.
approval_policy = "never"
sandbox_mode = "danger-full-access"
check_for_update_on_startup = false
# The vendor would fetch what the model names.
web_search = "disabled"
# Instructions are delivered with the prompt, never picked up from the repository.
project_doc_max_bytes = 0

[model_providers.box]
name = "box"
base_url = "http://127.0.0.1:{}/v1"
wire_api = "responses"
requires_openai_auth = false
request_max_retries = 2
stream_max_retries = 2
stream_idle_timeout_ms = 300000

[features]
# By default the CLI waits for ever for a connection that is refused.
unbounded_connection_retries = false
# The gateway has to read the body.
enable_request_compression = false
# Each of these would look for something outside of the box.
plugins = false
apps = false
goals = false

[analytics]
enabled = false

[shell_environment_policy]
# By default variables named after keys, tokens and secrets are given to the model's shell.
ignore_default_excludes = false

[skills.bundled]
enabled = false
)";

// Not offered by default.
constexpr const char* kStepsConfig = "\n[tools.update_plan]\nenabled = true\n";

std::vector<std::string> codex_argv(const contract::InvocationFields& fields) {
  std::vector<std::string> argv = {"/opt/agent/codex",
                                   "exec",
                                   "--json",
                                   "--ephemeral",
                                   "--skip-git-repo-check",
                                   "--strict-config",
                                   "-s",
                                   "danger-full-access",
                                   "-m",
                                   fields.model};
  if (fields.phase == contract::Phase::planning) {
    argv.emplace_back("--output-schema");
    argv.push_back(std::string("/home/agent/") + kSchemaName);
  }
  argv.emplace_back("-");  // the prompt is on standard input
  return argv;
}

}  // namespace

// Clients of the vendor's take the version of the API as a part of the base.
std::vector<std::string> openai_env(std::uint16_t gateway_port) {
  return {"OPENAI_BASE_URL=http://127.0.0.1:" + std::to_string(gateway_port) + "/v1",
          std::string("OPENAI_API_KEY=") + kPlaceholderKey};
}

Result<Launch> plan_codex_launch(const LaunchInput& input, std::vector<std::string> env) {
  Launch launch;
  launch.agent_dir = input.agents_dir + kCodexPrograms;
  launch.version = kCodexVersion;
  // Without the second program, which has to lie beside the first, the model's every tool call fails and the
  // CLI ends with 0 all the same.
  TRY_VOID(check_installed(launch, "Codex", {"codex", "codex-code-mode-host"}, input.agents_dir));
  launch.argv = codex_argv(*input.invocation);
  launch.env = std::move(env);
  launch.stdin_text = input.invocation->prompt;
  const std::string config = fmt::format(kConfig, input.gateway_port) + (input.steps ? kStepsConfig : "");
  launch.home_files.push_back({".codex/config.toml", config});
  if (input.invocation->phase == contract::Phase::planning) {
    launch.home_files.push_back({kSchemaName, contract::plan_answer_schema()});
  }
  return launch;
}

}  // namespace cofferdam::agent
