// A small world for tests of the whole product: a user (root or an unprivileged one), a home, a git
// repository, a state folder, and the programs staged where that user can run them. Everything lies in one
// temporary folder that goes with the object.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/process.h"
#include "base/result.h"
#include "contract/result.h"

namespace cofferdam::test {

// Who runs the product. `rootless` is uid 12345 without any group when the tests run as root, and the caller
// otherwise; `root` needs root.
enum class User { rootless, root };
std::string user_name(User user);

// Ends the test as skipped with the reason, or as failed when COFFERDAM_MUST_WORK names `capability` (a
// comma-separated list, or "all"). To be returned from at once.
void skip_or_fail(const std::string& capability, const std::string& reason);
bool running_as_root();
// What storage.tree has to be where memory holds the work of a writing phase: overlayfs needs user attributes
// on tmpfs, which came with Linux 6.6. Debian 12's own kernel is older (tests/vm).
std::string tree_in_memory();

struct RunOutcome {
  ExitStatus status;
  std::string out;
  std::string err;
  std::optional<contract::ResultRecord> result;  // decoded from the last line of `out`, if it is one
};

class World {
 public:
  static Result<World> create(User user);

  const std::string& root() const { return folder_.path(); }
  std::string repo() const { return root() + "/repo"; }
  std::string home() const { return root() + "/home"; }
  std::string state() const { return root() + "/state"; }
  std::string config() const { return root() + "/config.toml"; }
  std::optional<UserIds> ids() const { return ids_; }
  const std::string& programs() const { return programs_; }

  // Files of the user's: content with owner and mode as the user would have made it.
  void write(const std::string& path, const std::string& content, unsigned mode = 0644) const;
  // Runs a program as the user in a clean environment; aborts the test when it cannot be started.
  Captured as_user(const std::vector<std::string>& argv, const std::string& input = {}) const;
  std::string git(
      const std::vector<std::string>& args) const;  // in the repository; fails the test on an error
  // One commit with these files.
  void commit(const std::map<std::string, std::string>& files, const std::string& message) const;

  // `cofferdam ARGS`, as the user. Environment entries are added to the clean one.
  RunOutcome cofferdam(const std::vector<std::string>& args, const std::string& input = {}) const;
  SpawnOptions cofferdam_options(const std::vector<std::string>& args) const;
  std::vector<std::string> extra_env;
  std::string program = "cofferdam";  // what cofferdam() runs; the tests of faults have one of their own
  // From now on cofferdam sees these files ("FROM=TO") in the place of the host's.
  void replace_files(std::vector<std::string> pairs) { replaced_ = std::move(pairs); }

  // Every file below `path` with its type, mode and content hash: equal before and after means untouched.
  std::string fingerprint(const std::string& path, const std::vector<std::string>& except = {}) const;

 private:
  World(TempDir folder, std::optional<UserIds> ids, std::string programs)
      : folder_(std::move(folder)), ids_(ids), programs_(std::move(programs)) {}
  TempDir folder_;
  std::optional<UserIds> ids_;
  std::string programs_;
  std::vector<std::string> replaced_;
};

// The agents' folder (node_modules of the pinned CLIs) as the tests use it; empty when not installed.
std::string installed_agents();

// Ids of processes whose command line holds `marker`.
std::vector<int> processes_with(const std::string& marker);

inline constexpr const char* kTestKey = "sk-ant-test-SECRET-2f81c0de";
inline constexpr const char* kTestLogin = "sk-ant-oat01-test-SECRET-77a0c4e1";

// The stand-in vendor as a process of the test's. Ends with the object.
class Standin {
 public:
  // `script` is the stand-in's script (JSON text); `key` the only credential that it accepts.
  static Result<Standin> start(const std::string& folder, const std::string& script,
                               const char* key = kTestKey);
  const std::string& url() const { return url_; }
  std::string ca_file() const { return folder_ + "/ca.pem"; }
  // Every request so far, one JSON line each.
  std::vector<std::string> requests() const;

 private:
  Standin(Child child, std::string folder, std::string url)
      : child_(std::move(child)), folder_(std::move(folder)), url_(std::move(url)) {}
  Child child_;
  std::string folder_;
  std::string url_;
};

}  // namespace cofferdam::test
