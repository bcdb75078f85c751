// Objects into the user's repository, as its owner: first into a folder of the name that `git prune` and `git
// gc` clear away, as git's own receive-pack does it, so that whatever is killed, nothing stays that they do
// not know.
#pragma once

#include <optional>
#include <string>

#include "base/process.h"
#include "base/result.h"

namespace cofferdam::handoff {

struct Target {
  std::string git_dir;                 // where the objects and refs are; not a linked work tree's own
  std::optional<UserIds> run_as = {};  // clone::Source::run_as
};

// Code::denied for a repository of another user's, and when a link leads out of it.
Status check_target(const Target& to);
// Code::denied for a symbolic link; what is not there is fine.
Status must_not_be_link(const std::string& path);
// The revisions that make `commit`, on top of `base_head`, whole there: what is between the two. When that
// base was pruned there during the run: everything behind it that no branch or tag there reaches, out of
// `from_dir`. Code::not_found when the history in `from_dir` is cut, so that the base cannot be made up for.
Result<std::string> revisions_for(const std::string& from_dir, const std::string& commit,
                                  const std::string& base_head, const Target& to);
// What `revisions` (for `git pack-objects --revs`) name in the bare repository of ours `from_dir`. git checks
// every object and link again, against the objects of the user's repository.
Status send_objects(const std::string& from_dir, const std::string& revisions, const Target& to);

}  // namespace cofferdam::handoff
