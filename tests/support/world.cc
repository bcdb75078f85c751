#include "support/world.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "base/io.h"
#include "base/sha256.h"
#include "base/text.h"
#include "contract/json.h"

namespace cofferdam::test {
namespace {

constexpr uid_t kRootlessId = 12345;

// A folder for test worlds that every user can walk to.
std::string base_folder() {
  return "/var/tmp";
}

void must(const Status& status) {
  if (!status) {
    std::fprintf(stderr, "test set-up failed: %s\n", status.error().line().c_str());
    std::abort();
  }
}

bool runs_as(const std::optional<UserIds>& ids, const std::string& program) {
  SpawnOptions options;
  options.program = program;
  options.argv = {program, "--version"};
  options.run_as = ids;
  auto child = spawn(options);
  return child.has_value();
}

void copy_tree(const std::string& from, const std::string& to) {
  SpawnOptions options;
  options.program = "/bin/cp";
  options.argv = {"cp", "-aL", from, to};
  auto copied = run_capture(options, "", {});
  if (!copied || !copied->status.success()) std::abort();
}

// Where the user can run the programs: the build folder, or a copy when its path is closed to him.
std::string stage_programs(const std::optional<UserIds>& ids, const std::string& folder) {
  std::string build = COFFERDAM_BUILD_DIR;
  if (runs_as(ids, build + "/cofferdam")) return build;
  std::string staged = folder + "/programs";
  must(make_dirs(staged, 0755));
  for (const char* name : {"cofferdam", "cofferdam-init", "cofferdam-probe", "cofferdam-faults"}) {
    if (exists(build + "/" + name)) copy_tree(build + "/" + name, staged + "/" + name);
  }
  return staged;
}

void give(const std::optional<UserIds>& ids, const std::string& path) {
  if (ids.has_value() && ::lchown(path.c_str(), ids->uid, ids->gid) != 0) std::abort();
}

}  // namespace

std::string user_name(User user) {
  return user == User::root ? "root" : "rootless";
}

bool running_as_root() {
  return ::geteuid() == 0;
}

std::string tree_in_memory() {
  constexpr std::pair<int, int> kUserAttributes{6, 6};
  struct utsname name {};
  std::pair<int, int> version;
  if (::uname(&name) != 0 || std::sscanf(name.release, "%d.%d", &version.first, &version.second) != 2)
    std::abort();
  return version < kUserAttributes ? "checkout" : "overlay";
}

void skip_or_fail(const std::string& capability, const std::string& reason) {
  const char* list = ::getenv("COFFERDAM_MUST_WORK");
  std::vector<std::string> must_work = split(list == nullptr ? "" : list, ',');
  const bool must_run = std::any_of(must_work.begin(), must_work.end(), [&](const std::string& name) {
    return name == capability || name == "all";
  });
  if (must_run) {
    GTEST_FAIL() << capability << " must work here: " << reason;
  } else {
    GTEST_SKIP() << capability << ": " << reason;
  }
}

Result<World> World::create(User user) {
  if (user == User::root && !running_as_root())
    return make_error(Code::denied, "the tests do not run as root");
  std::optional<UserIds> ids;
  if (user == User::rootless && running_as_root()) ids = UserIds{kRootlessId, kRootlessId};
  TRY(TempDir folder, TempDir::create(base_folder(), "cofferdam-test-"));
  if (::chmod(folder.path().c_str(), 0755) != 0) return sys_error("chmod", errno);
  World world(std::move(folder), ids, "");
  world.programs_ = stage_programs(ids, world.root());
  for (const std::string& path : {world.repo(), world.home(), world.state()}) {
    TRY_VOID(make_new_dir(path, 0700));
    give(ids, path);
  }
  world.git({"init", "-q", "-b", "main", "."});
  world.git({"config", "user.name", "Test User"});
  world.git({"config", "user.email", "test@localhost"});
  return world;
}

void World::write(const std::string& path, const std::string& content, unsigned mode) const {
  std::size_t slash = path.rfind('/');
  std::string parent = path.substr(0, slash);
  if (!exists(parent)) {
    must(make_dirs(parent, 0755));
    give(ids_, parent);
  }
  must(write_file_atomic(path, content, mode));
  if (::chmod(path.c_str(), mode) != 0) std::abort();
  give(ids_, path);
}

Captured World::as_user(const std::vector<std::string>& argv, const std::string& input) const {
  SpawnOptions options;
  options.program = argv[0];
  options.argv = argv;
  options.env = {"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=" + home(), "LC_ALL=C.UTF-8"};
  options.env.insert(options.env.end(), extra_env.begin(), extra_env.end());
  options.run_as = ids_;
  options.cwd = repo();
  auto captured = run_capture(options, input, {});
  if (!captured) {
    ADD_FAILURE() << captured.error().line();
    return {};
  }
  return *captured;
}

std::string World::git(const std::vector<std::string>& args) const {
  std::vector<std::string> argv = {"/usr/bin/git", "-C", repo()};
  argv.insert(argv.end(), args.begin(), args.end());
  Captured captured = as_user(argv);
  EXPECT_TRUE(captured.status.success()) << join(args, " ") << ": " << captured.err;
  return std::string(trim(captured.out));
}

void World::commit(const std::map<std::string, std::string>& files, const std::string& message) const {
  for (const auto& [path, content] : files) write(repo() + "/" + path, content);
  git({"add", "-A"});
  git({"commit", "-q", "-m", message});
}

SpawnOptions World::cofferdam_options(const std::vector<std::string>& args) const {
  SpawnOptions options;
  options.program = programs_ + "/" + program;
  options.argv = {"cofferdam"};
  options.run_as = ids_;
  if (!replaced_.empty()) {
    // Mounts come first, then the user.
    const std::string replaced = std::exchange(options.program, COFFERDAM_BUILD_DIR "/tests/with-files");
    options.argv = {options.program, ids_.has_value() ? std::to_string(ids_->uid) : "-"};
    options.argv.insert(options.argv.end(), replaced_.begin(), replaced_.end());
    options.argv.insert(options.argv.end(), {"--", replaced});
    options.run_as.reset();
  }
  options.argv.insert(options.argv.end(), args.begin(), args.end());
  options.env = extra_env;  // first: of two entries with one name, getenv(3) finds the first
  for (const std::string& entry :
       {std::string("PATH=/usr/local/bin:/usr/bin:/bin"), "HOME=" + home(), "COFFERDAM_STATE_DIR=" + state(),
        "COFFERDAM_AGENTS_DIR=" + installed_agents()}) {
    options.env.push_back(entry);
  }
  options.cwd = repo();
  return options;
}

RunOutcome World::cofferdam(const std::vector<std::string>& args, const std::string& input) const {
  auto captured = run_capture(cofferdam_options(args), input, {});
  RunOutcome outcome;
  if (!captured) {
    ADD_FAILURE() << captured.error().line();
    return outcome;
  }
  outcome.status = captured->status;
  outcome.out = captured->out;
  outcome.err = captured->err;
  std::vector<std::string> lines = split(trim(outcome.out), '\n');
  if (!lines.empty()) {
    if (auto result = contract::decode_result(lines.back())) outcome.result = *result;
  }
  return outcome;
}

std::string World::fingerprint(const std::string& path, const std::vector<std::string>& except) const {
  struct stat info {};
  if (::lstat(path.c_str(), &info) != 0) return path + " absent\n";
  if (std::find(except.begin(), except.end(), path) != except.end()) return {};
  std::string line = fmt::format("{} {:o} {} {}", path, info.st_mode, info.st_uid, info.st_gid);
  if (S_ISREG(info.st_mode)) {
    auto bytes = read_file(path, 1U << 30U);
    line += " " + (bytes ? sha256_hex(*bytes) : "unreadable") +
            fmt::format(" {}.{}", info.st_mtim.tv_sec, info.st_mtim.tv_nsec);
  }
  if (S_ISLNK(info.st_mode)) {
    std::array<char, 4096> text{};
    ssize_t n = ::readlink(path.c_str(), text.data(), text.size());
    line += " -> " + std::string(text.data(), n > 0 ? static_cast<std::size_t>(n) : 0);
  }
  line += "\n";
  if (S_ISDIR(info.st_mode)) {
    if (auto names = list_dir(path)) {
      for (const std::string& name : *names) line += fingerprint(path + "/" + name, except);
    }
  }
  return line;
}

std::string installed_agents() {
  const char* named = ::getenv("COFFERDAM_TEST_AGENTS");
  std::string folder = named != nullptr ? named : COFFERDAM_SOURCE_DIR "/agents";
  return is_directory(folder + "/node_modules") ? folder : "";
}

std::vector<int> processes_with(const std::string& marker) {
  std::vector<int> found;
  auto names = list_dir("/proc");
  if (!names) return found;
  for (const std::string& name : *names) {
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    auto line = read_file("/proc/" + name + "/cmdline", 1U << 20U);
    if (line && line->find(marker) != std::string::npos) found.push_back(std::atoi(name.c_str()));
  }
  return found;
}

Result<Standin> Standin::start(const std::string& folder, const std::string& script, const char* key) {
  TRY_VOID(make_dirs(folder, 0755));
  TRY_VOID(write_file_atomic(folder + "/script.json", script, 0644));
  SpawnOptions options;
  options.program = COFFERDAM_BUILD_DIR "/cofferdam-standin";
  options.argv = {"cofferdam-standin",
                  "--script",
                  folder + "/script.json",
                  "--record",
                  folder + "/record.ndjson",
                  "--ready",
                  folder + "/ready.json",
                  "--ca-out",
                  folder + "/ca.pem",
                  "--expect-key",
                  key};
  TRY(Child child, spawn(options));
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!exists(folder + "/ready.json")) {
    TRY(bool ended, wait_readable(child.pidfd(), 20));
    if (ended) return make_error(Code::internal, "the stand-in ended at its start");
    if (std::chrono::steady_clock::now() > end) return make_error(Code::timeout, "the stand-in is not ready");
  }
  TRY(std::string text, read_file(folder + "/ready.json", 65536));
  TRY(contract::Json ready, contract::parse_json(text, 65536));
  if (::chmod((folder + "/ca.pem").c_str(), 0644) != 0) return sys_error("chmod", errno);
  return Standin(std::move(child), folder, ready.value("url", ""));
}

std::vector<std::string> Standin::requests() const {
  auto text = read_file(folder_ + "/record.ndjson", 256U << 20U);
  if (!text) return {};
  return split(*text, '\n');
}

}  // namespace cofferdam::test
