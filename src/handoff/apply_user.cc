#include "handoff/apply_user.h"

#include <fmt/core.h>

#include <map>

#include "base/text.h"
#include "git/git.h"

namespace cofferdam::handoff {
namespace {

git::GitCall call_on(const ApplyInput& input, std::vector<std::string> args) {
  return git::call_in(input.head_dir, std::move(args), input.run_as);
}

using Settings = std::map<std::string, std::string>;

// Of what is said more than once the last counts, as for git. Our own overrides are of scope "command".
Result<Settings> read_settings(const ApplyInput& input) {
  TRY(const Captured said,
      git::try_git(call_on(input, {"config", "--includes", "--show-scope", "-z", "--get-regexp",
                                   "^core\\.(sparsecheckout|filemode|symlinks|autocrlf|eol|hookspath)$"})));
  Settings settings;
  const std::vector<std::string> fields = split(said.out, '\0');
  for (std::size_t i = 0; i + 1 < fields.size(); i += 2) {
    if (fields[i] != "local" && fields[i] != "worktree") continue;
    const std::size_t end = fields[i + 1].find('\n');
    const std::string value = end == std::string::npos ? "true" : fields[i + 1].substr(end + 1);
    settings[fields[i + 1].substr(0, end)] = value;
  }
  return settings;
}

bool is_true(const Settings& settings, const std::string& key, bool otherwise) {
  const auto found = settings.find(key);
  if (found == settings.end()) return otherwise;
  return found->second == "true" || found->second == "yes" || found->second == "on" || found->second == "1";
}

std::string one_of(const Settings& settings, const std::string& key,
                   std::initializer_list<const char*> known) {
  const auto found = settings.find(key);
  if (found == settings.end()) return "";
  for (const char* value : known) {
    if (found->second == value) return value;
  }
  return "";
}

std::string below_work_tree(const ApplyInput& input, std::string path) {
  if (starts_with(path, input.work_tree + "/")) path = path.substr(input.work_tree.size() + 1);
  while (starts_with(path, "./")) path = path.substr(2);
  while (!path.empty() && path.back() == '/') path.pop_back();
  return starts_with(path, "/") || starts_with(path, "~") ? "" : path;
}

// By a process of the owner's: the folder is theirs.
Result<std::string> read_attributes(const ApplyInput& input) {
  SpawnOptions options;
  options.program = "/bin/cat";
  options.argv = {"cat", "--", input.git_dir + "/info/attributes"};
  options.env = {"LC_ALL=C"};
  options.run_as = input.run_as;
  TRY(const Captured done, run_capture(std::move(options), "", {1U << 20U, std::chrono::minutes(1)}));
  return done.status.success() ? done.out : std::string();
}

}  // namespace

Result<UserRepository> read_user_repository(const ApplyInput& input) {
  UserRepository user;
  TRY(const Captured branch, git::try_git(call_on(input, {"symbolic-ref", "-q", "HEAD"})));
  if (branch.status.success()) user.branch = trim(branch.out);
  TRY(const Captured head, git::try_git(call_on(input, {"rev-parse", "--verify", "HEAD^{commit}"})));
  user.head = trim(head.out);
  if (!head.status.success() || !is_object_id(user.head)) {
    return make_error(Code::usage, input.work_tree + " has no commit on its branch yet",
                      "check a branch out");
  }
  TRY(const std::string tree, git::run_git(call_on(input, {"rev-parse", "--verify", user.head + "^{tree}"})));
  user.tree = trim(tree);
  TRY(const Settings settings, read_settings(input));
  if (is_true(settings, "core.sparsecheckout", false)) {
    return make_error(Code::usage, input.work_tree + " is a sparse checkout, to which nothing is applied",
                      "git sparse-checkout disable, or use git merge with the published branch");
  }
  user.file_mode = is_true(settings, "core.filemode", true);
  user.symlinks = is_true(settings, "core.symlinks", true);
  user.autocrlf = one_of(settings, "core.autocrlf", {"true", "false", "input"});
  user.eol = one_of(settings, "core.eol", {"lf", "crlf", "native"});
  const auto hooks = settings.find("core.hookspath");
  if (hooks != settings.end()) user.hooks_path = below_work_tree(input, hooks->second);
  TRY(user.attributes, read_attributes(input));
  return user;
}

Result<bool> has_in_history(const ApplyInput& input, const std::string& head, const std::string& commit) {
  TRY(const Captured answer, git::try_git(call_on(input, {"merge-base", "--is-ancestor", commit, head})));
  return answer.status.success();  // also false when it is not there at all
}

}  // namespace cofferdam::handoff
