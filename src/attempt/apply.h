// `cofferdam apply`: the work of a finished attempt onto the branch that is checked out in the user's
// repository.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "attempt/run.h"
#include "base/result.h"
#include "contract/result.h"
#include "handoff/apply.h"

namespace cofferdam::attempt {

struct ApplyRequest {
  std::optional<std::string> repository;  // none: the one that the attempt was for
  std::vector<std::string> accepted;
  bool dry_run = false;
};

struct ApplyReport {
  bool applied = false;
  handoff::ApplyKind kind = handoff::ApplyKind::nothing;
  std::string work_tree;
  std::string branch;  // full ref; empty when HEAD is detached
  std::string from;    // the commit of HEAD before
  std::string to;      // and behind; empty unless applied
  std::vector<contract::ChangedFile> files;
  std::vector<handoff::Obstacle> obstacles;  // with any of them nothing is touched
  std::vector<std::string> notes;
};

// `result.change.commit` is set. Code::conflict when somebody works on the attempt, or in the repository.
Result<ApplyReport> apply(const Host& host, const contract::ResultRecord& result,
                          const ApplyRequest& request);

// Ends what an application that was killed has left: in the folder of its attempt, which is locked, and in
// the user's repository. Nothing to do is fine.
Status mend_application(const Host& host, const std::string& attempt_folder);

}  // namespace cofferdam::attempt
