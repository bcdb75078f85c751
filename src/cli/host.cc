#include "cli/host.h"

#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "base/file.h"
#include "cli/table.h"
#include "contract/rules.h"

namespace cofferdam::cli {
namespace {

constexpr std::size_t kMaxConfigBytes = 1U << 20U;

std::string variable(const char* name) {
  const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): read once, before any thread
  return value == nullptr ? "" : value;
}

bool is_absolute(const std::string& path) {
  return !path.empty() && path.front() == '/';
}

}  // namespace

Environment read_environment() {
  return {variable("HOME"), variable("XDG_CONFIG_HOME"), variable("XDG_STATE_HOME"),
          variable("COFFERDAM_STATE_DIR"), variable("COFFERDAM_AGENTS_DIR")};
}

Result<std::string> state_dir_path(const Environment& environment) {
  if (!environment.state_dir.empty()) {
    if (is_absolute(environment.state_dir)) return environment.state_dir;
    return make_error(Code::config, "COFFERDAM_STATE_DIR must be an absolute path");
  }
  // Relative ones are to be ignored, says the XDG specification.
  if (is_absolute(environment.xdg_state_home)) return environment.xdg_state_home + "/cofferdam";
  if (is_absolute(environment.home)) return environment.home + "/.local/state/cofferdam";
  return make_error(Code::config, "no place for the state: HOME is not set", "set COFFERDAM_STATE_DIR");
}

Status check_state_dir(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return sys_error("state folder " + path, errno);
  if (!S_ISDIR(info.st_mode)) {
    return make_error(Code::denied, path + " is not a folder", "name another one in COFFERDAM_STATE_DIR");
  }
  if (info.st_uid != ::geteuid()) {
    return make_error(Code::denied,
                      fmt::format("the state folder {} belongs to uid {}, not to you (uid {})", path,
                                  info.st_uid, ::geteuid()),
                      "name a folder of your own in COFFERDAM_STATE_DIR");
  }
  if ((info.st_mode & 022U) != 0) {
    return make_error(
        Code::denied,
        fmt::format("others may write to the state folder {} (mode {:04o})", path, info.st_mode & 07777U),
        fmt::format("chmod 0700 {}", path));
  }
  return {};
}

Result<std::string> prepare_state_dir(const Environment& environment) {
  TRY(const std::string wanted, state_dir_path(environment));
  TRY_VOID(make_dirs(wanted, 0700));
  TRY(const std::string path, real_path(wanted));
  TRY_VOID(check_state_dir(path));
  return path;
}

Result<std::optional<std::string>> existing_state_dir(const Environment& environment) {
  TRY(const std::string wanted, state_dir_path(environment));
  if (!exists(wanted)) return std::optional<std::string>{};
  TRY(const std::string path, real_path(wanted));
  TRY_VOID(check_state_dir(path));
  return std::optional<std::string>(path);
}

Result<contract::Config> load_config(const Environment& environment, const std::optional<std::string>& path) {
  std::string file;
  if (path) {
    file = *path;
  } else if (is_absolute(environment.xdg_config_home)) {
    file = environment.xdg_config_home + "/cofferdam/config.toml";
  } else if (is_absolute(environment.home)) {
    file = environment.home + "/.config/cofferdam/config.toml";
  }
  if (!path && (file.empty() || !exists(file))) return contract::Config{};
  auto text = read_file(file, kMaxConfigBytes);
  if (!text) {
    // Whatever the reason (absent, unreadable, a folder): the remedy is to correct the configuration.
    return make_error(
        Code::config, "cannot read the configuration: " + text.error().what,
        path ? "correct --config" : "correct the file's permissions, or name another with --config");
  }
  return contract::decode_config(*text, file);
}

namespace {

Result<std::string> find_program(const std::string& exe_dir, const std::string& name) {
  const std::string beside = exe_dir + "/" + name;
  const std::string installed = exe_dir + "/../libexec/cofferdam/" + name;
  for (const std::string& candidate : {beside, installed}) {
    if (::access(candidate.c_str(), X_OK) == 0) return real_path(candidate);
  }
  return make_error(Code::missing_tool, fmt::format("{} is neither at {} nor at {}", name, beside, installed),
                    "install or build it together with cofferdam");
}

}  // namespace

Result<std::string> find_init(const std::string& exe_dir) {
  return find_program(exe_dir, "cofferdam-init");
}

Result<std::string> find_probe(const std::string& exe_dir) {
  return find_program(exe_dir, "cofferdam-probe");
}

std::string find_agents_dir(const Environment& environment, const contract::Config& config,
                            const std::string& exe_dir) {
  if (!config.agents_dir.empty()) return config.agents_dir;
  if (is_absolute(environment.agents_dir)) return environment.agents_dir;
  std::string installed = exe_dir + "/../share/cofferdam/agents";
  const std::string in_source_tree = exe_dir + "/../../agents";  // from build/<preset>
  for (const std::string& candidate : {installed, in_source_tree}) {
    if (!is_directory(candidate)) continue;
    if (auto resolved = real_path(candidate)) return *std::move(resolved);
  }
  return installed;
}

std::string default_image_list(const std::string& exe_dir) {
  std::string installed = exe_dir + "/../share/cofferdam/images/debian12.lock";
  std::string in_source_tree = exe_dir + "/../../images/debian12.lock";  // from build/<preset>
  return exists(in_source_tree) && !exists(installed) ? in_source_tree : installed;
}

Result<attempt::Host> find_host(const Environment& environment, contract::Config config) {
  attempt::Host host;
  host.config = std::move(config);
  TRY(const std::string exe_dir, executable_dir());
  TRY(host.program, real_path("/proc/self/exe"));
  TRY(host.init, find_init(exe_dir));
  host.agents_dir = find_agents_dir(environment, host.config, exe_dir);
  return host;
}

Result<attempt::Host> make_host(const Environment& environment, contract::Config config) {
  TRY(attempt::Host host, find_host(environment, std::move(config)));
  TRY(host.state_dir, prepare_state_dir(environment));
  return host;
}

Status check_attempt_id(const std::string& id) {
  if (contract::is_attempt_id(id)) return {};
  return make_error(Code::usage, fmt::format("\"{}\" is not an attempt id", one_line(id, 80)),
                    "`cofferdam list` shows them");
}

}  // namespace cofferdam::cli
