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
  std::string ref_prefix = "cofferdam";
  std::string attempt_id;
};

// "refs/heads/<prefix>/<id>": what publish() makes.
std::string branch_ref(const PublishInput& input);

// Makes branch_ref(), and returns it; created only if nothing is there. Code::conflict, with what to do, when
// a branch of that name or one that blocks it exists.
Result<std::string> publish(const AttemptStore& store, const PublishInput& input);

}  // namespace cofferdam::handoff
