// Applying a change to the branch that is checked out: what it would come to, worked out in a repository of
// ours from the attempt's store and the user's HEAD, before anything of the user's is touched. place.h does
// the rest.
//
// git runs here on verified objects, in a repository whose configuration we wrote: no merge driver, filter,
// textconv or hook exists there. What a driver of the user's would have done is refused or said, never
// guessed.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/file.h"
#include "base/process.h"
#include "base/result.h"
#include "contract/result.h"
#include "handoff/place.h"
#include "handoff/store.h"

namespace cofferdam::handoff {

struct ApplyInput {
  std::string git_dir;   // objects and branches, also for a linked work tree
  std::string head_dir;  // HEAD and index: the same, but for a linked work tree
  std::string work_tree;
  std::optional<UserIds> run_as = {};
  std::string attempt_id;
  std::string base_head;  // the user's commit that the attempt began from
  std::string base;       // the same, or our commit of the user's uncommitted files on top of it
  std::string commit;     // the last one of the attempt
  std::string author_name;
  std::string author_email;
  std::string sign_key = {};
  Timestamp time;
  std::vector<std::string> accepted;  // paths, or folders, of sensitive files that the user has looked at
};

// How the branch moves.
enum class ApplyKind { nothing, fast_forward, merge };
const char* apply_kind_name(ApplyKind kind);

struct ApplyPlan {
  ApplyKind kind = ApplyKind::nothing;  // nothing: HEAD has the change already
  Placement placement;                  // new_head is the attempt's own commit until deliver()
  std::vector<contract::ChangedFile> files;
  // Why not: "conflict", "submodule", "link", "filter", or a kind of sensitive_paths.h. `detail` says whether
  // --accept takes it away.
  std::vector<Obstacle> obstacles;
  std::vector<std::string> notes;  // what the user should do behind it, one line each
  UniqueFd contents;               // for place()
  std::string tree;                // what HEAD will have
  std::string head_tree;           // what HEAD has
  std::optional<TempDir> scratch;  // our repository, until the plan goes
};

// Works in a fresh folder below `scratch` and changes nothing else. Code::conflict or Code::usage for a
// repository to which nothing can be applied.
Result<ApplyPlan> plan_apply(const AttemptStore& store, const ApplyInput& input, const std::string& scratch);

// The objects of the plan into the user's repository; sets placement.new_head. No branch is moved.
Status deliver(const ApplyInput& input, ApplyPlan* plan);

}  // namespace cofferdam::handoff
