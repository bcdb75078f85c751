#include "attempt/apply.h"

#include <fmt/core.h>

#include "attempt/lock.h"
#include "attempt/take_work.h"
#include "base/file.h"
#include "base/text.h"
#include "clone/clone.h"
#include "handoff/place_process.h"

namespace cofferdam::attempt {
namespace {

// The work tree of a git directory of the usual kind is the folder that it is in.
std::string usual_place(const std::string& git_dir) {
  constexpr std::string_view kDotGit = "/.git";
  return git_dir.ends_with(kDotGit) ? git_dir.substr(0, git_dir.size() - kDotGit.size()) : git_dir;
}

Result<clone::Source> find_target(const contract::ResultRecord& result, const ApplyRequest& request) {
  const std::string& repository = result.clone->repository;
  TRY(clone::Source source, clone::open_source(request.repository.value_or(usual_place(repository))));
  if (source.git_dir != repository) {
    return make_error(
        Code::usage,
        fmt::format("attempt {} was for {}, not for {}", result.attempt_id, repository, source.git_dir),
        "name a work tree of that repository with --repo");
  }
  if (source.work_tree.empty()) {
    return make_error(Code::usage, repository + " has no work tree to apply to",
                      "name one with --repo, or merge the published branch where you work");
  }
  return source;
}

handoff::ApplyInput input_of(const Host& host, const contract::ResultRecord& result,
                             const ApplyRequest& request, const clone::Source& source) {
  handoff::ApplyInput input;
  input.git_dir = source.git_dir;
  input.head_dir = source.head_dir;
  input.work_tree = source.work_tree;
  input.run_as = source.run_as;
  input.attempt_id = result.attempt_id;
  input.base_head = result.clone->head;
  input.base = result.change.base;
  input.commit = result.change.commit.value_or("");
  input.author_name = host.config.author_name;
  input.author_email = host.config.author_email;
  input.sign_key = host.config.sign_key;
  input.time = now();
  input.accepted = request.accepted;
  return input;
}

// Names the work tree for a recovery, as long as something may be half done there.
std::string note_in(const std::string& folder) {
  return folder + "/applying";
}

Status mend_all(const Host& host, const handoff::ApplyInput& input, const std::string& folder) {
  auto mended = handoff::mend_apart(host.program, input.head_dir, input.run_as);
  if (mended) return {};
  return std::move(mended).error().with("broken off, see " + note_in(folder));
}

// Everything is looked at first, so that all that stands in the way is said at once and nothing was touched.
Status carry_out(const Host& host, const handoff::ApplyInput& input, const std::string& folder, bool dry_run,
                 handoff::ApplyPlan* plan) {
  plan->placement.dry_run = true;
  TRY(std::vector<handoff::Obstacle> found,
      handoff::place_apart(host.program, plan->placement, plan->contents.get(), input.run_as));
  for (handoff::Obstacle& one : found) plan->obstacles.push_back(std::move(one));
  if (dry_run || !plan->obstacles.empty()) return {};
  TRY_VOID(handoff::deliver(input, plan));
  plan->placement.dry_run = false;
  TRY_VOID(write_file_atomic(note_in(folder), input.work_tree));
  auto placed = handoff::place_apart(host.program, plan->placement, plan->contents.get(), input.run_as);
  // After an error everything has been put back, unless the process itself was killed.
  if (!placed) TRY_VOID(mend_all(host, input, folder));
  TRY_VOID(remove_tree(note_in(folder)));
  TRY(plan->obstacles, std::move(placed));
  return {};
}

}  // namespace

Result<ApplyReport> apply(const Host& host, const contract::ResultRecord& result,
                          const ApplyRequest& request) {
  if (!result.clone || !result.change.commit) return make_error(Code::internal, "there is nothing to apply");
  TRY(const clone::Source source, find_target(result, request));
  // So that nobody discards the store meanwhile.
  TRY(const std::optional<AttemptLock> lock, AttemptLock::try_take(host.state_dir, result.attempt_id));
  if (!lock) {
    return make_error(Code::conflict, fmt::format("somebody works on attempt \"{}\"", result.attempt_id),
                      "try again later");
  }
  TRY(const handoff::AttemptStore store, handoff::AttemptStore::open(store_path(lock->folder())));
  const handoff::ApplyInput input = input_of(host, result, request, source);
  TRY(const std::string mended, handoff::mend_apart(host.program, source.head_dir, source.run_as));
  TRY(handoff::ApplyPlan plan, handoff::plan_apply(store, input, lock->folder()));
  ApplyReport report;
  if (!mended.empty()) report.notes.push_back(mended);
  if (plan.kind != handoff::ApplyKind::nothing)
    TRY_VOID(carry_out(host, input, lock->folder(), request.dry_run, &plan));
  report.kind = plan.kind;
  report.work_tree = source.work_tree;
  report.branch = plan.placement.branch;
  report.from = plan.placement.old_head;
  report.files = std::move(plan.files);
  report.obstacles = std::move(plan.obstacles);
  for (std::string& note : plan.notes) report.notes.push_back(std::move(note));
  report.applied = plan.kind != handoff::ApplyKind::nothing && !request.dry_run && report.obstacles.empty();
  if (report.applied) report.to = plan.placement.new_head;
  return report;
}

Status mend_application(const Host& host, const std::string& attempt_folder) {
  if (exists(note_in(attempt_folder))) {
    TRY(const std::string work_tree, read_file(note_in(attempt_folder), 4096));
    TRY(const clone::Source source, clone::open_source(work_tree));
    TRY(const std::string mended, handoff::mend_apart(host.program, source.head_dir, source.run_as));
    TRY_VOID(remove_tree(note_in(attempt_folder)));
  }
  TRY(const std::vector<std::string> names, list_dir(attempt_folder));
  for (const std::string& name : names) {
    if (!starts_with(name, "apply-")) continue;
    std::string scratch = attempt_folder;
    scratch.append("/").append(name);
    TRY_VOID(remove_tree(scratch));
  }
  return {};
}

}  // namespace cofferdam::attempt
