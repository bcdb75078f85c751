// The user's configuration: TOML at $XDG_CONFIG_HOME/cofferdam/config.toml or --config. Nothing in the target
// repository is ever part of it.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "contract/controls.h"
#include "contract/destination.h"
#include "contract/finding_rules.h"
#include "contract/invocation.h"
#include "contract/price.h"

namespace cofferdam::contract {

// Where the broker gets a vendor's credential from.
enum class CredentialSource { env, file, command, keyring };

struct VendorConfig {
  std::string upstream;        // "https://host[:port][/prefix]"
  std::string ca_bundle;       // PEM file; empty: the system's
  std::string credential_env;  // name of the variable that holds the key
  // Further ones: what `credential` names.
  CredentialSource credential = CredentialSource::env;
  std::string credential_file = {};  // absolute; empty: where the vendor's own CLI keeps its login
  std::vector<std::string> credential_command = {};  // argv, the program absolute; no shell
  std::string keyring = {};                          // description of a "user" key in the kernel's keyring
  bool bearer = false;         // credential_bearer: send it as a bearer token, whatever it looks like
  std::string token_url = {};  // https://host[:port]/path where logins are refreshed; empty: the vendor's
  std::vector<std::string> vendor_tools = {};  // server-side tools opted in to; the gateway knows which exist
  std::string extra_ca_bundle = {};            // PEM file, trusted beside ca_bundle or the system's
  std::string proxy = {};                      // "http://host:port", asked to CONNECT; empty: direct
  // How long the gateway waits for the head of an answer, and for more of it; how large an answer may be.
  std::chrono::milliseconds head_timeout = std::chrono::minutes(10);
  std::chrono::milliseconds idle_timeout = std::chrono::minutes(10);
  std::uint64_t answer_bytes = 64ULL << 20U;
};

// Where a destination's credential comes from, and how it is sent.
struct DestinationCredential {
  CredentialSource source = CredentialSource::env;  // env, command or keyring
  std::string env = {};
  std::vector<std::string> command = {};
  std::string keyring = {};
  bool basic = false;          // "user:password", sent as Basic; otherwise as Bearer
  std::string ca_bundle = {};  // PEM file, trusted for this destination instead of the system's
};

// A destination that a repository's section can name.
struct NamedDestination {
  std::string name;  // 1..64 of [A-Za-z0-9._-]
  Destination destination;
  std::optional<DestinationCredential> credential = {};  // then destination.credential is the name
};

// What holds an attempt's work tree.
enum class WorkStorage {
  automatic,  // an image for root; otherwise a slot if there are any for this user, else memory
  memory,     // tmpfs
  image,      // a file system of its own on the disk of the state folder; as root only
  slot,       // one of those that `cofferdam host-setup` has made for this user; not as root
};

inline constexpr const char* kCgroupName = "cofferdam";
inline constexpr const char* kSlotsDir = "/var/lib/cofferdam/slots";

struct Config {
  // [vendors.anthropic]
  VendorConfig anthropic{"https://api.anthropic.com", "", "ANTHROPIC_API_KEY"};
  // [vendors.openai]
  VendorConfig openai{"https://api.openai.com", "", "OPENAI_API_KEY"};
  // Where a ChatGPT login is asked instead of openai.upstream, if that is still the API's own.
  static constexpr const char* kChatGptUpstream = "https://chatgpt.com";
  // Of a vendor that is none there is no configuration: never asked for.
  const VendorConfig& vendor(Vendor name) const { return name == Vendor::openai ? openai : anthropic; }
  // [commit] author_name, author_email: author and committer of the change
  std::string author_name = "Cofferdam";
  std::string author_email = "cofferdam@localhost";
  // [commit] sign_key: an ssh key, or the public half of one that an agent holds; empty: commits are not
  // signed
  std::string sign_key;
  // [commit] steps: a commit for each step of the agent's own list that it has done
  bool steps = false;
  // [branch] prefix: the change lands on <prefix>/<attempt-id>
  std::string branch_prefix = "cofferdam";
  // [agents] dir: where the pinned agent CLIs are installed; empty: beside the program
  std::string agents_dir;
  // [agents.claude] model
  std::string claude_model = "claude-sonnet-5";
  // [agents.codex] model
  std::string codex_model = "gpt-6.2-sol";
  // [prices."MODEL"] input, output, cache_read, cache_write, cache_write_1h: dollars per million tokens. They
  // come before the built-in table.
  std::map<std::string, ModelPrice> prices;
  // [[destinations]] name, host, port, plain, addresses, max_sent, max_received, credential, credential_env,
  // credential_command, keyring, credential_scheme, ca_bundle. They open nothing by themselves.
  std::vector<NamedDestination> destinations;
  // [repositories."/absolute/path"] destinations: names of the above that are open for this repository
  std::map<std::string, std::vector<std::string>> repositories;
  // [box] uid: the unprivileged host uid and gid that a supervisor started as root becomes for every box
  std::uint32_t box_uid = 65533;
  // [box] image: the root of boxes that are asked for on the command line: "sha256:...", or "host"
  std::string box_image = "host";
  // [box] cgroup: name of the subtree of control groups, as given to `cofferdam host-setup`
  std::string cgroup = kCgroupName;
  // [debug] capture_bodies: requests and answers at the gateway are written to a file of the attempt's
  bool capture_bodies = false;
  // [capacity] attempts, memory_bytes: of all attempts of this state folder at a time, the latter over their
  // limits.memory_bytes and what the boxes of ours of each may take; 0: not bounded
  std::uint64_t capacity_attempts = 64;
  std::uint64_t capacity_memory_bytes = 0;
  // [cache] max_bytes: what base packs that no attempt needs may take
  std::uint64_t cache_max_bytes = 20ULL << 30U;
  // [handoff] refuse, report: names of finding rules that shall be other than by default
  FindingChoices findings;
  // [controls] NAME = "required" or "best-effort": other than the control table has it for this mode
  ControlChoices controls;
  // [recovery] keep_storage: how long the storage of an attempt is kept when its supervisor has gone; 0s: not
  std::chrono::milliseconds keep_storage = std::chrono::hours(1);
  // [recovery] checkpoint_every: how often work that lies in memory is committed into the attempt's own
  // store; 0s: not
  std::chrono::milliseconds checkpoint_every = std::chrono::minutes(10);
  // [workspace] storage, tree: with "checkout" every attempt gets files of its own instead of an overlay
  WorkStorage work_storage = WorkStorage::automatic;
  bool work_overlay = true;
  // [workspace] slots_dir: where `cofferdam host-setup` has put the slots
  std::string slots_dir = kSlotsDir;
  // [deadlines] total = "30m", grace = "5s", first_output, idle; the last two are for agents only, and 0s
  // means that there is none. [limits] with the keys of Limits.
  Deadlines deadlines{std::chrono::minutes(30), std::chrono::seconds(5), std::chrono::minutes(5),
                      std::chrono::minutes(30)};
  Limits limits;
};

// Strict: unknown keys, wrong types and values out of range are Code::config with line and key.
Result<Config> decode_config(std::string_view toml, const std::string& shown_path);
// "30m", "90s", "1h30m", "250ms": Code::usage otherwise.
Result<std::chrono::milliseconds> parse_duration(std::string_view text);

}  // namespace cofferdam::contract
