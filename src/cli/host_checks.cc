// The checks of `cofferdam doctor` that need no running box. Each one is a row; none changes anything.
#include <fmt/core.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "base/file.h"
#include "base/process.h"
#include "base/text.h"
#include "cli/doctor.h"
#include "cli/table.h"
#include "contract/json.h"

namespace cofferdam::cli {
namespace {

constexpr std::size_t kMaxSmallFile = 1U << 20U;

CheckRow kernel_row() {
  // mount_setattr(2) came with 5.12; everything else that a native box needs is older.
  constexpr int kMajor = 5;
  constexpr int kMinor = 12;
  struct utsname name {};
  ::uname(&name);
  int major = 0;
  int minor = 0;
  const bool parsed = std::sscanf(name.release, "%d.%d", &major, &minor) == 2;  // NOLINT(cert-err34-c)
  const bool enough = parsed && (major > kMajor || (major == kMajor && minor >= kMinor));
  return {"kernel", enough ? CheckState::ok : CheckState::unavailable, fmt::format("Linux {}", name.release),
          fmt::format("a native box needs Linux {}.{} or newer", kMajor, kMinor)};
}

// The first line of what a tool says, or nullopt when it failed.
struct ToolAnswer {
  bool ok = false;
  std::string line;
};

ToolAnswer ask_tool(const std::vector<std::string>& argv, std::optional<UserIds> run_as = {}) {
  SpawnOptions options;
  options.program = argv.front();
  options.argv = argv;
  options.env = {"PATH=/usr/bin:/bin", "LC_ALL=C"};
  options.run_as = run_as;
  auto captured = run_capture(options, "", {64U << 10U, std::chrono::seconds(10)});
  if (!captured) return {false, captured.error().line()};
  const std::vector<std::string> lines =
      split(captured->status.success() ? captured->out : captured->err, '\n');
  std::string line = lines.empty() ? captured->status.describe() : one_line(lines.front(), 200);
  return {captured->status.success(), std::move(line)};
}

// By doing it, as the user that the boxes will have: no single setting says whether the kernel allows it.
CheckRow user_namespace_row(const contract::Config& config) {
  std::optional<UserIds> run_as;
  if (::geteuid() == 0) run_as = UserIds{config.box_uid, config.box_uid};
  const ToolAnswer answer =
      ask_tool({"/usr/bin/unshare", "--user", "--map-root-user", "--mount", "/usr/bin/true"}, run_as);
  if (answer.ok)
    return {"user-namespaces", CheckState::ok, "an unprivileged user and mount namespace was made"};
  return {"user-namespaces", CheckState::unavailable, answer.line,
          "allow unprivileged user namespaces: look at the sysctls user.max_user_namespaces,"
          " kernel.unprivileged_userns_clone and kernel.apparmor_restrict_unprivileged_userns"};
}

// Memory is bounded by the limits and taken as it is filled. The work tree is memory too where no disk holds
// it.
CheckRow memory_row(const contract::Config& config, bool on_disk) {
  constexpr std::uint64_t kWayOutShares = 2;   // of a work tree's size
  constexpr std::uint64_t kScratchMounts = 3;  // HOME, /tmp, /dev/shm
  auto info = read_file("/proc/meminfo", kMaxSmallFile);
  unsigned long long available_kib = 0;
  if (info) {
    const std::size_t at = info->find("MemAvailable:");
    if (at != std::string::npos) available_kib = std::strtoull(info->c_str() + at + 13, nullptr, 10);
  }
  const std::uint64_t available = available_kib * 1024;
  const std::uint64_t most = (kWayOutShares + (on_disk ? 0 : 1)) * config.limits.work_bytes +
                             kScratchMounts * config.limits.scratch_bytes;
  const std::string detail =
      fmt::format("{} available; {}way out and scratch of one attempt: {} as an upper bound",
                  short_bytes(available), on_disk ? "" : "work tree, ", short_bytes(most));
  if (available >= most) return {"host-memory", CheckState::ok, detail};
  return {"host-memory", CheckState::weaker, detail,
          "lower work_bytes and scratch_bytes in [limits], or free memory"};
}

// Only where root has made some for this user, or the configuration asks for one.
void add_slots_row(const contract::Config& config, const attempt::HostStorage& storage,
                   std::vector<CheckRow>* rows) {
  const bool wanted = storage.kind == "slot";
  if (storage.slots == 0 && !wanted) return;
  const std::string setup =
      "let root run `cofferdam host-setup` for this user, again after every boot; or set "
      "workspace.storage to \"memory\"";
  if (storage.fitting == 0) {
    return rows->push_back(
        {"slots", wanted ? CheckState::unavailable : CheckState::weaker,
         fmt::format("none of {} below {} is mounted and within [limits]", storage.slots, config.slots_dir),
         setup});
  }
  if (storage.free == 0) {
    return rows->push_back({"slots", CheckState::unavailable,
                            fmt::format("no capacity: all {} slots of this user are in use", storage.fitting),
                            "wait for an attempt to end, or " + setup});
  }
  rows->push_back({"slots", CheckState::ok,
                   fmt::format("{} of {} free, {} each", storage.free, storage.fitting,
                               short_bytes(storage.slot_bytes))});
}

CheckRow git_row() {
  const ToolAnswer answer = ask_tool({"/usr/bin/git", "--version"});
  if (answer.ok) return {"git", CheckState::ok, answer.line};
  return {"git", CheckState::unavailable, answer.line, "install git"};
}

CheckRow init_row(const std::string& exe_dir) {
  auto init = find_init(exe_dir);
  if (init) return {"init", CheckState::ok, *init};
  return {"init", CheckState::unavailable, init.error().what, init.error().hint};
}

// The member of an npm manifest, or nothing.
std::string manifest_text(const std::string& path, const char* outer, const char* inner) {
  auto text = read_file(path, kMaxSmallFile);
  if (!text) return "";
  auto json = contract::parse_json_lenient(*text, kMaxSmallFile);
  if (!json || !json->is_object() || !json->contains(outer)) return "";
  const contract::Json& first = (*json)[outer];
  if (first.is_string()) return first.get<std::string>();
  if (inner == nullptr || !first.is_object() || !first.contains(inner) || !first[inner].is_string())
    return "";
  return first[inner].get<std::string>();
}

struct AgentPlace {
  const char* row;
  const char* package;
  const char* program;  // in the package's folder
};
constexpr AgentPlace kAgentPlaces[] = {
    {"agent claude", "@anthropic-ai/claude-code-linux-x64", "/claude"},
    {"agent codex", "@openai/codex-linux-x64", "/vendor/x86_64-unknown-linux-musl/bin/codex"},
};

// "0.171.0-linux-x64" of "npm:@openai/codex@0.171.0-linux-x64", which is a package under another name.
std::string pinned_version(const std::string& dependency) {
  return dependency.substr(starts_with(dependency, "npm:") ? dependency.rfind('@') + 1 : 0);
}

CheckRow agent_row(const AgentPlace& place, const std::string& agents_dir) {
  const std::string folder = agents_dir + "/node_modules/" + place.package;
  const std::string remedy =
      fmt::format("install the pinned agents: npm ci --ignore-scripts in {}", agents_dir);
  if (::access((folder + place.program).c_str(), X_OK) != 0) {
    return {place.row, CheckState::weaker, fmt::format("not installed at {}: only other agents work", folder),
            remedy};
  }
  const std::string version = manifest_text(folder + "/package.json", "version", nullptr);
  const std::string pinned =
      pinned_version(manifest_text(agents_dir + "/package.json", "dependencies", place.package));
  if (!pinned.empty() && version != pinned) {
    return {place.row, CheckState::weaker, fmt::format("version {}, pinned is {}", version, pinned), remedy};
  }
  return {place.row, CheckState::ok, "version " + version};
}

CheckRow credential_row(const contract::Config& config) {
  std::vector<std::string> set;
  std::vector<std::string> missing;
  for (const contract::VendorConfig* vendor : {&config.anthropic, &config.openai}) {
    // NOLINTNEXTLINE(concurrency-mt-unsafe): no thread of ours sets it
    const char* value = std::getenv(vendor->credential_env.c_str());
    (value != nullptr && *value != '\0' ? set : missing).push_back(vendor->credential_env);
  }
  if (!set.empty()) return {"credential", CheckState::ok, join(set, " and ") + " is set (not tried)"};
  return {"credential", CheckState::weaker,
          join(missing, " and ") + " are not set: only --agent command works",
          "set the one of your agent's vendor to the key of your account"};
}

CheckRow state_row(const Environment& environment) {
  auto place = state_dir_path(environment);
  if (!place) return {"state folder", CheckState::unavailable, place.error().what, place.error().hint};
  if (!exists(*place)) return {"state folder", CheckState::ok, *place + " (will be made)"};
  Status checked = check_state_dir(*place);
  if (checked) return {"state folder", CheckState::ok, *place};
  return {"state folder", CheckState::unavailable, checked.error().what, checked.error().hint};
}

}  // namespace

CheckRow config_row(const Result<contract::Config>& loaded, const std::optional<std::string>& path) {
  if (loaded) return {"configuration", CheckState::ok, path ? *path : "the user's, or the defaults"};
  return {"configuration", CheckState::unavailable, loaded.error().what, loaded.error().hint};
}

std::vector<CheckRow> needed_rows(const contract::Config& config) {
  const auto exe_dir = executable_dir();
  return {kernel_row(), user_namespace_row(config), git_row(), init_row(exe_dir ? *exe_dir : "/")};
}

std::vector<CheckRow> attempt_rows(const Environment& environment, const contract::Config& config,
                                   const Result<attempt::HostStorage>& storage) {
  const auto exe_dir = executable_dir();
  const std::string agents_dir = find_agents_dir(environment, config, exe_dir ? *exe_dir : "/");
  std::vector<CheckRow> rows;
  if (storage) {
    rows.push_back(memory_row(config, storage->kind != "tmpfs"));
    add_slots_row(config, *storage, &rows);
  } else {
    rows.push_back({"slots", CheckState::unavailable, storage.error().what, storage.error().hint});
  }
  for (const AgentPlace& place : kAgentPlaces) rows.push_back(agent_row(place, agents_dir));
  rows.push_back(credential_row(config));
  rows.push_back(state_row(environment));
  return rows;
}

}  // namespace cofferdam::cli
