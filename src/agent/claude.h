// Claude Code, as this library sees it. Private to src/agent.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/decoder.h"
#include "agent/launch.h"
#include "contract/json.h"
#include "contract/phase.h"

namespace cofferdam::agent {

inline constexpr const char* kClaudeVersion = "2.1.197";
inline constexpr const char* kClaudePackage = "/node_modules/@anthropic-ai/claude-code-linux-x64";

inline constexpr std::size_t kMaxBlocks = 64;  // of one message; the CLI sends one

// `env` is what every agent gets; Claude's own variables are added.
Result<Launch> plan_claude_launch(const LaunchInput& input, std::vector<std::string> env);
// The variables that point an Anthropic client at the gateway, with a placeholder for the key or the login.
std::vector<std::string> anthropic_env(const LaunchInput& input);

std::unique_ptr<Decoder> make_claude_decoder(contract::Phase phase);

// The events of one message of the stream; none for the types that say nothing to a reader.
std::vector<AgentEvent> claude_events(const contract::Json& message);

// What the stream has said that the verdict hangs on.
struct ClaudeAccount {
  std::optional<contract::Json> result;  // the last message of type "result"
  bool model_spoke = false;              // at least one message came from a model, not from the CLI itself
  std::string last_error;                // of the stream, in case that no result follows
  std::string version;
  std::uint64_t skipped_lines = 0;
};
Verdict claude_verdict(const ClaudeAccount& account, contract::Phase phase, const ExitStatus& exit);

}  // namespace cofferdam::agent
