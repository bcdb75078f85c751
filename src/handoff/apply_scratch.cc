#include "handoff/apply_scratch.h"

#include <fmt/core.h>

#include <set>

#include "base/text.h"
#include "git/git.h"

namespace cofferdam::handoff {
namespace {

constexpr std::size_t kMaxListing = 256U << 20U;

git::GitCall call_on(const std::string& git_dir, std::vector<std::string> args) {
  git::GitCall call = git::call_in(git_dir, std::move(args));
  call.limits.out_bytes = kMaxListing;
  return call;
}

std::string listed(const std::vector<std::string>& paths) {
  std::string out;
  for (const std::string& path : paths) {
    out.append(path);
    out.push_back('\0');
  }
  return out;
}

// "<tree>", the paths with conflicts, an empty field, then for each message: how many paths, these, its type,
// its text (git-merge-tree(1), -z).
MergeOutcome read_merge(const std::string& out) {
  const std::vector<std::string> fields = split(out, '\0');
  MergeOutcome outcome;
  if (!fields.empty()) outcome.tree = fields[0];
  std::set<std::string> paths;
  std::size_t i = 1;
  for (; i < fields.size() && !fields[i].empty(); ++i) paths.insert(fields[i]);
  std::map<std::string, std::string> why;
  for (++i; i < fields.size();) {
    const std::size_t count = std::strtoul(fields[i].c_str(), nullptr, 10);
    if (count > fields.size() || i + count + 1 >= fields.size()) break;
    const std::string& type = fields[i + count + 1];
    for (std::size_t k = 1; k <= count; ++k) {
      if (starts_with(type, "CONFLICT")) why.emplace(fields[i + k], printable(type, 100));
    }
    i += count + 3;
  }
  for (const std::string& path : paths) {
    const auto found = why.find(path);
    outcome.conflicts.push_back({"conflict", path, found == why.end() ? "CONFLICT" : found->second});
  }
  return outcome;
}

}  // namespace

Result<ApplyScratch> ApplyScratch::create(const std::string& parent, const AttemptStore& store,
                                          const UserRepository& user) {
  TRY(TempDir folder, TempDir::create(parent, "apply-"));
  ApplyScratch scratch(std::move(folder));
  TRY_VOID(git::create_bare(scratch.git_dir_, user.head.size() == 40 ? "sha1" : "sha256"));
  TRY_VOID(write_file_atomic(scratch.git_dir_ + "/objects/info/alternates", store.path() + "/objects\n"));
  TRY_VOID(make_new_dir(scratch.git_dir_ + "/info"));
  TRY_VOID(write_file_atomic(scratch.git_dir_ + "/info/attributes", user.attributes));
  const std::pair<const char*, std::string> settings[] = {
      {"core.autocrlf", user.autocrlf}, {"core.eol", user.eol}, {"merge.directoryRenames", "false"}};
  std::size_t count = 0;
  for (const auto& [key, value] : settings) {
    if (value.empty()) continue;
    scratch.settings_.push_back(fmt::format("GIT_CONFIG_KEY_{}={}", count, key));
    scratch.settings_.push_back(fmt::format("GIT_CONFIG_VALUE_{}={}", count, value));
    ++count;
  }
  scratch.settings_.push_back(fmt::format("GIT_CONFIG_COUNT={}", count));
  return scratch;
}

Result<std::string> ApplyScratch::tree_of(const std::string& commit) const {
  TRY(const std::string out, git::run_git(call_on(git_dir_, {"rev-parse", "--verify", commit + "^{tree}"})));
  return std::string(trim(out));
}

Result<bool> ApplyScratch::is_ancestor(const std::string& older, const std::string& newer) const {
  TRY(const Captured answer, git::try_git(call_on(git_dir_, {"merge-base", "--is-ancestor", older, newer})));
  return answer.status.success();  // also false when it is not there at all
}

Status ApplyScratch::take_tree(const ApplyInput& input, const std::string& tree) const {
  git::GitCall known = call_on(input.git_dir, {"rev-parse", "--verify", "-q", input.base_head + "^{tree}"});
  known.run_as = input.run_as;
  TRY(const Captured base, git::try_git(known));
  git::GitCall from =
      call_on(input.git_dir, {"pack-objects", "--revs", "--stdout", "--delta-base-offset", "-q"});
  from.run_as = input.run_as;
  std::string wanted = tree + "\n";
  if (base.status.success()) wanted.append("^").append(trim(base.out)).append("\n");
  from.input = wanted;
  auto taken = git::pipe_git(from, call_on(git_dir_, {"index-pack", "--stdin"}));
  if (!taken) return std::move(taken).error().with("cannot read the tree of HEAD");
  return {};
}

Result<std::string> ApplyScratch::root_commit(const std::string& tree, const std::string& parent) const {
  git::GitCall call = call_on(git_dir_, {"commit-tree", tree});
  if (!parent.empty()) {
    call.args.emplace_back("-p");
    call.args.push_back(parent);
  }
  call.extra_env = git::identity_env("x", "x", 1);
  TRY(const std::string out, git::run_git(call));
  return std::string(trim(out));
}

Result<MergeOutcome> ApplyScratch::merge(const std::string& base_tree, const std::string& ours,
                                         const std::string& theirs) const {
  TRY(const std::string base, root_commit(base_tree, ""));
  TRY(const std::string left, root_commit(ours, base));
  TRY(const std::string right, root_commit(theirs, base));
  git::GitCall call =
      call_on(git_dir_, {"merge-tree", "--write-tree", "-z", "--name-only", "--messages", left, right});
  call.extra_env = settings_;
  TRY(const Captured merged, git::try_git(call));
  const int code = merged.status.code.value_or(-1);
  if (code < 0 || code > 1) {
    return make_error(Code::io, "git merge-tree: " + git::first_line(merged.err));
  }
  MergeOutcome outcome = read_merge(merged.out);
  if (!is_object_id(outcome.tree) || (code == 1) == outcome.conflicts.empty()) {
    return make_error(Code::protocol, "git merge-tree printed no result");
  }
  return outcome;
}

Result<std::vector<TreeChange>> ApplyScratch::changes(const std::string& from, const std::string& to) const {
  TRY(const std::string out, git::run_git(call_on(git_dir_, {"diff-tree", "-r", "--raw", "-z", "--no-renames",
                                                             "--no-abbrev", from, to})));
  const std::vector<std::string> fields = split(out, '\0');
  std::vector<TreeChange> changes;
  for (std::size_t i = 0; i + 1 < fields.size(); i += 2) {
    const std::vector<std::string> words = split(fields[i], ' ');
    if (words.size() != 5) return make_error(Code::protocol, "git diff-tree printed something else");
    changes.push_back({fields[i + 1], {words[0].substr(1), words[2]}, {words[1], words[3]}});
  }
  return changes;
}

Result<std::string> ApplyScratch::index_of(const std::string& tree) const {
  std::string file = folder_.path() + "/index-" + tree;
  if (exists(file)) return file;
  git::GitCall call = call_on(git_dir_, {"read-tree", tree});
  call.extra_env = {"GIT_INDEX_FILE=" + file};
  TRY(const std::string none, git::run_git(call));
  return file;
}

Result<std::map<std::string, std::string>> ApplyScratch::check_out(
    const std::string& tree, const std::vector<std::string>& paths) const {
  std::map<std::string, std::string> files;
  if (paths.empty()) return files;
  TRY(const std::string index, index_of(tree));
  const std::string folder = folder_.path() + "/files-" + tree;
  if (!exists(folder)) TRY_VOID(make_new_dir(folder));
  // Into files with names of git's own: what the paths are does not matter to our folder.
  git::GitCall call = call_on(git_dir_, {"checkout-index", "--temp", "-z", "--stdin"});
  const std::string input = listed(paths);
  call.input = input;
  call.extra_env = settings_;
  call.extra_env.push_back("GIT_INDEX_FILE=" + index);
  call.extra_env.push_back("GIT_WORK_TREE=" + folder);
  TRY(const std::string out, git::run_git(call));
  for (const std::string& line : split(out, '\0')) {
    const std::size_t tab = line.find('\t');
    if (tab == std::string::npos)
      return make_error(Code::protocol, "git checkout-index printed something else");
    std::string file = folder;
    file.append("/").append(line.substr(0, tab));
    files[line.substr(tab + 1)] = std::move(file);
  }
  if (files.size() != paths.size()) return make_error(Code::protocol, "git checkout-index left files out");
  return files;
}

Result<std::map<std::string, std::string>> ApplyScratch::attributes(
    const std::string& tree, const std::string& name, const std::vector<std::string>& paths) const {
  std::map<std::string, std::string> values;
  if (paths.empty()) return values;
  TRY(const std::string index, index_of(tree));
  git::GitCall call = call_on(git_dir_, {"check-attr", "--cached", "-z", "--stdin", name});
  const std::string input = listed(paths);
  call.input = input;
  call.extra_env = {"GIT_INDEX_FILE=" + index};
  TRY(const std::string out, git::run_git(call));
  const std::vector<std::string> fields = split(out, '\0');
  for (std::size_t i = 0; i + 2 < fields.size(); i += 3) values[fields[i]] = fields[i + 2];
  return values;
}

}  // namespace cofferdam::handoff
