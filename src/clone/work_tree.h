// The user's work tree against the head: what is not committed, and a commit of ours that holds it.
//
// Every git here runs as the owner, on the user's index and files, but with a git directory of ours: no
// filter, no driver and no monitor that the repository configures exists for it. Nothing is written but into
// the vault and, for a git that runs as somebody else, into a folder in /tmp, which goes again.
//
// Thread rules: free functions; each call has a folder of its own.
#pragma once

#include <optional>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "clone/clone.h"
#include "contract/clone.h"
#include "contract/invocation.h"

namespace cofferdam::clone {

// Counts tracked files that differ from HEAD and untracked ones that are not ignored. A source without a work
// tree has none. `bases` is a folder of ours: bases_of().
Status count_uncommitted(const Source& source, const std::string& bases, contract::SourceFacts* facts);

struct WorkTreeWish {
  std::string head;
  contract::History history = contract::History::full;
  bool untracked = false;   // these too, but for what the tree's and the repository's ignore rules name
  std::string author_name;  // also the committer
  std::string author_email;
  Timestamp time;  // in UTC, whole seconds
  std::string attempt_id;
};

struct WorkTreeCommit {
  contract::WorkTreeBase base;
  BaseUse use;  // keeps its packs in the vault
};

// A commit on top of the head with the tracked files as they are now, and its base packs in the vault.
// nullopt when nothing differs. Code::usage when it cannot be made: no work tree, a merge that is under way,
// a changed file under a filter of the user's (it would have to run).
Result<std::optional<WorkTreeCommit>> commit_work_tree(const Source& source, const WorkTreeWish& wish,
                                                       const std::string& vault_dir);

}  // namespace cofferdam::clone
