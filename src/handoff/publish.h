// Publication: the objects of one change and one new ref into the user's repository, as its owner. HEAD,
// index, work tree, configuration, hooks and reflogs are not touched. Owners and modes of what is added are
// git's own doing there (core.sharedRepository, folders with the set-group-id bit).
#pragma once

#include <optional>
#include <string>

#include "base/process.h"
#include "base/result.h"
#include "handoff/store.h"

namespace cofferdam::handoff {

// Said behind every failure: the work stays in the attempt's store.
inline constexpr const char* kPublishLater =
    "The change stays in Cofferdam's store; publish it later with: cofferdam recover";

struct PublishInput {
  // Of the user's repository: where its objects and refs are. Not a linked work tree's own.
  std::string git_dir;
  std::optional<UserIds> run_as = {};  // clone::Source::run_as
  std::string commit;                  // the last one of a chain on top of base_head; all of it is sent
  std::string base_head;               // the repository has it, or the store the whole history behind it
  std::string ref;                     // branch_ref()
};

// "refs/heads/<prefix>/<id>".
std::string branch_ref(const std::string& prefix, const std::string& attempt_id);

// Makes input.ref and returns it; created only if nothing is there, or this very commit. Code::conflict, with
// what to do, when a branch of that name or one that blocks it exists; Code::denied for a repository of
// another user's, and when a symbolic link is on the way. A process that is killed leaves at most a folder
// that `git prune` clears away.
Result<std::string> publish(const AttemptStore& store, const PublishInput& input);

}  // namespace cofferdam::handoff
