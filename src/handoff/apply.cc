#include "handoff/apply.h"

#include <fcntl.h>
#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/io.h"
#include "base/text.h"
#include "contract/sensitive_paths.h"
#include "handoff/apply_scratch.h"
#include "handoff/apply_user.h"
#include "handoff/beneath.h"
#include "handoff/commit_object.h"
#include "handoff/judge.h"
#include "handoff/send.h"

namespace cofferdam::handoff {
namespace {

constexpr const char* kNothing = "000000";
constexpr const char* kSubmodule = "160000";
constexpr const char* kLink = "120000";
constexpr std::size_t kMaxFileBytes = 2ULL << 30U;

PlaceKind kind_of(const std::string& mode) {
  if (mode == "100755") return PlaceKind::executable;
  if (mode == kLink) return PlaceKind::link;
  return mode == kNothing ? PlaceKind::absent : PlaceKind::file;
}

bool has_content(const TreeEntry& entry) {
  return entry.mode != kNothing && entry.mode != kSubmodule;
}

std::string status_of(const TreeChange& change) {
  if (change.before.mode == kNothing) return "added";
  if (change.after.mode == kNothing) return "deleted";
  const bool was_link = change.before.mode == kLink;
  return was_link == (change.after.mode == kLink) ? "modified" : "type-changed";
}

bool is_below(const std::string& path, std::string folder) {
  while (!folder.empty() && folder.back() == '/') folder.pop_back();
  return !folder.empty() && (path == folder || starts_with(path, folder + "/"));
}

// Files that git or another program reads by these names, and must not be led elsewhere.
bool must_be_a_file(const std::string& path) {
  const std::string name = path.substr(path.rfind('/') + 1);
  return name == ".gitattributes" || name == ".gitignore" || name == ".gitmodules" || name == ".mailmap";
}

class Planner {
 public:
  Planner(const ApplyInput& input, UserRepository user, ApplyScratch scratch, ApplyPlan* plan)
      : input_(input), user_(std::move(user)), scratch_(std::move(scratch)), plan_(*plan) {}

  Status run() {
    TRY_VOID(find_trees());
    TRY(changes_, scratch_.changes(user_.tree, plan_.tree));
    TRY(const std::vector<TreeChange> own, scratch_.changes(base_tree_, plan_.tree));
    for (const TreeChange& change : own) not_in_base_[change.path] = change.before;
    for (const TreeChange& change : changes_) {
      if (change.before.mode != kNothing) stood_.insert(change.path);
    }
    if (input_.base != input_.base_head) uncommitted_ = true;
    TRY_VOID(judge_paths());
    TRY_VOID(judge_merged());
    TRY_VOID(judge_filters());
    TRY_VOID(make_files());
    fill_placement();
    return {};
  }

  ApplyScratch take_scratch() { return std::move(scratch_); }

 private:
  Status find_trees() {
    TRY(base_tree_, scratch_.tree_of(input_.base));
    TRY(const std::string theirs, scratch_.tree_of(input_.commit));
    TRY(const bool ahead, scratch_.is_ancestor(user_.head, input_.commit));
    if (ahead || user_.head == input_.base_head) {
      plan_.kind = ApplyKind::fast_forward;
      plan_.tree = theirs;
      return {};
    }
    plan_.kind = ApplyKind::merge;
    TRY_VOID(scratch_.take_tree(input_, user_.tree));
    TRY(MergeOutcome merged, scratch_.merge(base_tree_, user_.tree, theirs));
    plan_.tree = merged.tree;
    plan_.obstacles = std::move(merged.conflicts);
    // What a three-way merge changed in HEAD without being the attempt's own version of it.
    TRY(const std::vector<TreeChange> attempt, scratch_.changes(base_tree_, theirs));
    for (const TreeChange& change : attempt) versions_.insert(change.after.id);
    return {};
  }

  bool is_accepted(const std::string& path) const {
    return std::any_of(input_.accepted.begin(), input_.accepted.end(),
                       [&](const std::string& accepted) { return is_below(path, accepted); });
  }

  void stop(const std::string& kind, const std::string& path, const std::string& why) {
    if (!is_accepted(path)) plan_.obstacles.push_back({kind, path, why + ": look at it, then give --accept"});
  }

  // A file that is as the user had it, committed or not, is the user's own.
  bool is_the_attempts(const TreeChange& change) const { return not_in_base_.count(change.path) != 0; }

  Status judge_paths() {
    for (const TreeChange& change : changes_) {
      plan_.files.push_back({change.path, status_of(change)});
      if (change.before.mode == kSubmodule || change.after.mode == kSubmodule) {
        plan_.obstacles.push_back({"submodule", change.path, "submodules are never entered: use git merge"});
        continue;
      }
      if (change.after.mode == kLink && !user_.symlinks) {
        plan_.obstacles.push_back(
            {"link", change.path, "this work tree has no symbolic links (core.symlinks)"});
      }
      if (!is_the_attempts(change)) continue;
      if (const auto kind = contract::sensitive_kind(change.path)) {
        stop(*kind, change.path, "some program of yours may follow it");
      } else if (!user_.hooks_path.empty() && is_below(change.path, user_.hooks_path)) {
        stop("hook", change.path, "core.hooksPath leads there");
      }
    }
    return {};
  }

  // merge-tree knows no attributes here. Where they ask for another merge than that of text, there is none.
  Status judge_merged() {
    if (plan_.kind != ApplyKind::merge) return {};
    std::vector<std::string> merged;
    for (const TreeChange& change : changes_) {
      if (has_content(change.after) && versions_.count(change.after.id) == 0) merged.push_back(change.path);
    }
    TRY(const auto values, scratch_.attributes(plan_.tree, "merge", merged));
    for (const auto& [path, value] : values) {
      if (value == "unspecified" || value == "set" || value == "text") continue;
      plan_.obstacles.push_back(
          {"conflict", path, fmt::format("both changed it, and merge={} is not run", printable(value, 80))});
    }
    return {};
  }

  Status judge_filters() {
    std::vector<std::string> written;
    for (const TreeChange& change : changes_) {
      if (has_content(change.after)) written.push_back(change.path);
    }
    TRY(const auto values, scratch_.attributes(plan_.tree, "filter", written));
    for (const auto& [path, value] : values) {
      if (value == "unspecified" || value == "unset") continue;
      const std::string name = printable(value, 80);
      stop("filter", path,
           fmt::format("filter={} is not run; what is stored is written{}", name,
                       value == "lfs" ? ", the pointer of LFS" : ""));
      if (!is_accepted(path)) continue;
      plan_.notes.push_back(
          value == "lfs" ? fmt::format("{} is written as it is stored; for its content run: git lfs pull",
                                       printable(path, 500))
                         : fmt::format("{} is written as it is stored: filter={} was not run",
                                       printable(path, 500), name));
    }
    return {};
  }

  using Files = std::map<std::string, std::string>;

  Result<std::string> read_rendered(const Files& files, const std::string& path) const {
    const auto found = files.find(path);
    if (found == files.end())
      return make_error(Code::internal, "a file was not made: " + printable(path, 300));
    return read_file(found->second, kMaxFileBytes);
  }

  // As it may stand in the work tree. With core.fileMode off the executable bit says nothing.
  Status add_known(const TreeEntry& entry, const Files& files, PlaceFile* file) const {
    if (entry.mode == kSubmodule) return {};
    std::string bytes;
    if (has_content(entry)) {
      TRY(bytes, read_rendered(files, file->path));
    }
    const PlaceKind kind = kind_of(entry.mode);
    file->known.push_back(fingerprint(kind, bytes));
    if (user_.file_mode || kind == PlaceKind::absent || kind == PlaceKind::link) return {};
    file->known.push_back(
        fingerprint(kind == PlaceKind::file ? PlaceKind::executable : PlaceKind::file, bytes));
    return {};
  }

  std::vector<std::string> paths_with(bool (*wanted)(const TreeEntry&), bool before) const {
    std::vector<std::string> paths;
    for (const TreeChange& change : changes_) {
      if (wanted(before ? change.before : change.after)) paths.push_back(change.path);
    }
    return paths;
  }

  Status make_files() {
    TRY(const Files now, scratch_.check_out(user_.tree, paths_with(has_content, true)));
    TRY(const Files then, scratch_.check_out(plan_.tree, paths_with(has_content, false)));
    std::vector<std::string> had;
    for (const TreeChange& change : changes_) {
      const auto base = not_in_base_.find(change.path);
      if (uncommitted_ && base != not_in_base_.end() && has_content(base->second)) had.push_back(change.path);
    }
    TRY(const Files own, scratch_.check_out(base_tree_, had));
    TRY(plan_.contents, open_file(scratch_.git_dir() + "/contents", O_RDWR | O_CREAT | O_EXCL));
    for (const TreeChange& change : changes_) {
      if (change.before.mode == kSubmodule || change.after.mode == kSubmodule) continue;
      TRY_VOID(make_file(change, now, then, own));
    }
    return {};
  }

  Status make_file(const TreeChange& change, const Files& now, const Files& then, const Files& own) {
    PlaceFile file;
    file.path = change.path;
    file.kind = kind_of(change.after.mode);
    file.mode = change.after.mode == kNothing ? "0" : change.after.mode;
    file.id = change.after.id;
    file.offset = written_;
    std::string bytes;
    if (has_content(change.after)) {
      TRY(bytes, read_rendered(then, change.path));
    }
    file.size = bytes.size();
    file.becomes = fingerprint(file.kind, bytes);
    if (file.kind == PlaceKind::link) judge_link(change, bytes);
    TRY_VOID(write_all(plan_.contents.get(), bytes));
    written_ += bytes.size();
    TRY_VOID(add_known(change.before, now, &file));
    TRY_VOID(add_known(change.after, then, &file));
    file.known_in_index.push_back(change.after.mode + " " + change.after.id);
    const auto base = not_in_base_.find(change.path);
    if (uncommitted_ && base != not_in_base_.end()) {
      TRY_VOID(add_known(base->second, own, &file));
      file.known_in_index.push_back(base->second.mode + " " + base->second.id);
    }
    if (file.kind != PlaceKind::absent && replaces_folder(change.path)) file.known.emplace_back("d");
    plan_.placement.files.push_back(std::move(file));
    return {};
  }

  void judge_link(const TreeChange& change, const std::string& target) {
    if (must_be_a_file(change.path)) {
      plan_.obstacles.push_back({"link", change.path, "it must not be a symbolic link"});
    } else if (is_the_attempts(change) && leads_outside(change.path, target)) {
      stop("link", change.path, "it leads out of the work tree, to " + printable(target, 200));
    }
  }

  bool replaces_folder(const std::string& path) const {
    const auto below = stood_.lower_bound(path + "/");
    return below != stood_.end() && starts_with(*below, path + "/");
  }

  void fill_placement() {
    Placement& placement = plan_.placement;
    placement.attempt_id = input_.attempt_id;
    placement.git_dir = input_.head_dir;
    placement.work_tree = input_.work_tree;
    placement.branch = user_.branch;
    placement.old_head = user_.head;
    placement.new_head = input_.commit;
    placement.message = fmt::format("cofferdam apply {}: {}", input_.attempt_id, apply_kind_name(plan_.kind));
    placement.name = input_.author_name;
    placement.email = input_.author_email;
    plan_.head_tree = user_.tree;
  }

  const ApplyInput& input_;
  const UserRepository user_;
  ApplyScratch scratch_;
  ApplyPlan& plan_;
  std::string base_tree_;
  bool uncommitted_ = false;                      // the base has files that the user had not committed
  std::vector<TreeChange> changes_;               // from HEAD
  std::map<std::string, TreeEntry> not_in_base_;  // what is other than in the base, and how it is there
  std::set<std::string> stood_;                   // paths of the change that HEAD has
  std::set<std::string> versions_;                // object ids of the attempt's own files
  std::uint64_t written_ = 0;
};

}  // namespace

const char* apply_kind_name(ApplyKind kind) {
  switch (kind) {
    case ApplyKind::nothing:
      return "nothing";
    case ApplyKind::fast_forward:
      return "fast-forward";
    case ApplyKind::merge:
      return "merge";
  }
  return "nothing";
}

Result<ApplyPlan> plan_apply(const AttemptStore& store, const ApplyInput& input,
                             const std::string& scratch_dir) {
  if (!is_object_id(input.commit) || !is_object_id(input.base) || !is_object_id(input.base_head)) {
    return make_error(Code::internal, "nothing to apply without full object ids");
  }
  TRY_VOID(check_target({input.git_dir, input.run_as}));
  TRY(UserRepository user, read_user_repository(input));
  ApplyPlan plan;
  plan.placement.branch = user.branch;
  plan.placement.old_head = user.head;
  TRY(const bool done, has_in_history(input, user.head, input.commit));
  if (done) return plan;
  TRY(ApplyScratch scratch, ApplyScratch::create(scratch_dir, store, user));
  Planner planner(input, std::move(user), std::move(scratch), &plan);
  TRY_VOID(planner.run());
  plan.scratch = planner.take_scratch().take_folder();
  return plan;
}

Status deliver(const ApplyInput& input, ApplyPlan* plan) {
  const Target to{input.git_dir, input.run_as};
  const std::string from = plan->scratch->path() + "/git";
  TRY(std::string revisions, revisions_for(from, input.commit, input.base_head, to));
  if (plan->kind == ApplyKind::merge) {
    revisions.append(plan->tree).append("\n^").append(plan->head_tree).append("\n");
  }
  TRY_VOID(send_objects(from, revisions, to));
  if (plan->kind != ApplyKind::merge) return {};
  CommitText commit;
  commit.tree = plan->tree;
  commit.parents = {plan->placement.old_head, input.commit};
  commit.name = input.author_name;
  commit.email = input.author_email;
  commit.time = input.time;
  commit.message = fmt::format("Merge the work of attempt {}\n", input.attempt_id);
  TRY(const std::string text, signed_commit_text(commit, input.sign_key));
  TRY(plan->placement.new_head, write_commit({to.git_dir, to.run_as}, text));
  return {};
}

}  // namespace cofferdam::handoff
