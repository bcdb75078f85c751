// The user's configuration: TOML at $XDG_CONFIG_HOME/cofferdam/config.toml or --config. Nothing in the target
// repository is ever part of it.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "contract/invocation.h"

namespace cofferdam::contract {

struct VendorConfig {
  std::string upstream;                        // "https://host[:port][/prefix]"
  std::string ca_bundle;                       // PEM file; empty: the system's
  std::string credential_env;                  // name of the variable that holds the key
  std::vector<std::string> vendor_tools = {};  // server-side tools opted in to; the gateway knows which exist
  // How long the gateway waits for the head of an answer, and for more of it; how large an answer may be.
  std::chrono::milliseconds head_timeout = std::chrono::minutes(10);
  std::chrono::milliseconds idle_timeout = std::chrono::minutes(10);
  std::uint64_t answer_bytes = 64ULL << 20U;
};

struct Config {
  // [vendors.anthropic]
  VendorConfig anthropic{"https://api.anthropic.com", "", "ANTHROPIC_API_KEY"};
  // [vendors.openai]
  VendorConfig openai{"https://api.openai.com", "", "OPENAI_API_KEY"};
  // Of a vendor that is none there is no configuration: never asked for.
  const VendorConfig& vendor(Vendor name) const { return name == Vendor::openai ? openai : anthropic; }
  // [commit] author_name, author_email: author and committer of the change
  std::string author_name = "Cofferdam";
  std::string author_email = "cofferdam@localhost";
  // [branch] prefix: the change lands on <prefix>/<attempt-id>
  std::string branch_prefix = "cofferdam";
  // [agents] dir: where the pinned agent CLIs are installed; empty: beside the program
  std::string agents_dir;
  // [agents.claude] model
  std::string claude_model = "claude-sonnet-5";
  // [agents.codex] model
  std::string codex_model = "gpt-6.2-sol";
  // [box] uid: the unprivileged host uid and gid that a supervisor started as root becomes for every box
  std::uint32_t box_uid = 65533;
  // [deadlines] total = "30m", grace = "5s"; [limits] with the keys of Limits
  Deadlines deadlines;
  Limits limits;
};

// Strict: unknown keys, wrong types and values out of range are Code::config with line and key.
Result<Config> decode_config(std::string_view toml, const std::string& shown_path);
// "30m", "90s", "1h30m", "250ms": Code::usage otherwise.
Result<std::chrono::milliseconds> parse_duration(std::string_view text);

}  // namespace cofferdam::contract
