// This user's places: state folder, configuration, and the programs beside us.
#pragma once

#include <optional>
#include <string>

#include "attempt/run.h"
#include "base/result.h"
#include "contract/config.h"

namespace cofferdam::cli {

// The variables that name places; empty ones count as unset (as the XDG base directory specification wants).
struct Environment {
  std::string home;
  std::string xdg_config_home;
  std::string xdg_state_home;
  std::string state_dir;   // COFFERDAM_STATE_DIR
  std::string agents_dir;  // COFFERDAM_AGENTS_DIR
};
Environment read_environment();

// Where the state folder is or would be. Code::config when nothing says where.
Result<std::string> state_dir_path(const Environment& environment);
// Ours, a folder, and not writable by anybody else: Code::denied otherwise.
Status check_state_dir(const std::string& path);
// Made (mode 0700) when missing, checked, and resolved.
Result<std::string> prepare_state_dir(const Environment& environment);
// For verbs that only read: nullopt when there is none yet.
Result<std::optional<std::string>> existing_state_dir(const Environment& environment);

// `path` or the default place. Only the default one may be missing.
Result<contract::Config> load_config(const Environment& environment, const std::optional<std::string>& path);

// The programs and folders beside the one in `exe_dir`.
Result<std::string> find_init(const std::string& exe_dir);
Result<std::string> find_probe(const std::string& exe_dir);
std::string find_agents_dir(const Environment& environment, const contract::Config& config,
                            const std::string& exe_dir);

// The list of packages and agents that came with this program.
std::string default_image_list(const std::string& exe_dir);

// All of it but the state folder, which stays empty: for `doctor`, which leaves nothing behind.
Result<attempt::Host> find_host(const Environment& environment, contract::Config config);
// All of it, for the verbs that run an attempt. Makes the state folder, so it comes after everything that can
// be wrong with what the user asked for.
Result<attempt::Host> make_host(const Environment& environment, contract::Config config);

// Ids become parts of paths: Code::usage for what cannot be one.
Status check_attempt_id(const std::string& id);

}  // namespace cofferdam::cli
