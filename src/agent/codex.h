// The Codex CLI, as this library sees it. Private to src/agent.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/decoder.h"
#include "agent/launch.h"
#include "contract/json.h"
#include "contract/phase.h"

namespace cofferdam::agent {

inline constexpr const char* kCodexVersion = "0.171.0";
// The programs alone: what else the package holds (a sandbox, a search tool, voice) has no part in a box.
inline constexpr const char* kCodexPrograms =
    "/node_modules/@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin";

Result<Launch> plan_codex_launch(const LaunchInput& input, std::vector<std::string> env);
// The variables that point an OpenAI client at the gateway, with a placeholder for the key.
std::vector<std::string> openai_env(std::uint16_t gateway_port);

std::unique_ptr<Decoder> make_codex_decoder(contract::Phase phase);

// What the stream has said that the verdict hangs on.
struct CodexAccount {
  bool completed = false;              // "turn.completed" was seen
  std::optional<std::string> failure;  // the reason of "turn.failed"
  std::string broken_tools;            // why no tool of the model's works; the CLI goes on and ends with 0
  std::string last_message;            // of the model
  std::string last_error;              // of the stream, in case that the turn never ends
  std::uint64_t input_tokens = 0;
  std::uint64_t output_tokens = 0;
  std::uint64_t skipped_lines = 0;
};

// The events of one message of the stream; none for the types that say nothing to a reader.
std::vector<AgentEvent> codex_events(const contract::Json& message, const CodexAccount& account);
// Messages, thoughts and errors have no status.
bool is_tool_use(const contract::Json& item);
// Whether an error item says that the model's tools are out of order.
bool is_broken_tools(const std::string& message);

Verdict codex_verdict(const CodexAccount& account, contract::Phase phase, const ExitStatus& exit);

}  // namespace cofferdam::agent
