// Publication: the objects of one commit and one new ref into the user's repository, as its owner. HEAD,
// index, work tree, configuration, hooks and reflogs are not touched.
#pragma once

#include <optional>
#include <string>

#include "base/process.h"
#include "base/result.h"
#include "handoff/store.h"

namespace cofferdam::handoff {

struct PublishInput {
  std::string git_dir;                 // of the user's repository: clone::Source::git_dir
  std::optional<UserIds> run_as = {};  // clone::Source::run_as
  std::string commit;
  std::string base_head;  // the commit's parent, which the repository has
  std::string ref;        // branch_ref()
};

// "refs/heads/<prefix>/<id>".
std::string branch_ref(const std::string& prefix, const std::string& attempt_id);

// Makes input.ref and returns it; created only if nothing is there, or this very commit. Code::conflict, with
// what to do, when a branch of that name or one that blocks it exists.
Result<std::string> publish(const AttemptStore& store, const PublishInput& input);

}  // namespace cofferdam::handoff
