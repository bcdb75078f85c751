// The clone stage: from the user's repository to a pack in Cofferdam's vault that holds exactly what the
// trusted head reaches. The repository is only read, as its owner, and nothing it configures is run.
#pragma once

#include <optional>
#include <string>

#include "base/process.h"
#include "base/result.h"
#include "clone/cache.h"
#include "contract/clone.h"
#include "contract/invocation.h"

namespace cofferdam::clone {

// A repository of the user's, found but not changed.
struct Source {
  std::string git_dir;                 // canonical
  std::string work_tree;               // canonical; empty for a bare repository
  std::string object_format;           // "sha1" or "sha256"
  std::optional<UserIds> run_as = {};  // the owner, when git must not run as us
};

// `path` is a work tree, a folder below one, or a git directory. Code::usage, with what to do instead, when
// it is none, or one that cannot be used yet (linked work trees, submodules).
Result<Source> open_source(const std::string& path);

// The full id of the commit that `revision` names. Code::usage when there is no commit yet or no such
// revision.
Result<std::string> resolve_commit(const Source& source, const std::string& revision = "HEAD");

struct Cloned {
  contract::CloneIdentity identity;
  contract::BasePacks packs;
  BaseUse use;  // keeps the pack in the vault
};

// Checks that request.head is a commit (and request.tree, if given, its tree) and makes, or finds, its base
// pack below `vault_dir`, which is made when missing. Any number of processes may do this at once.
// Code::not_found when objects are missing (shallow and partial clones). request.repository is not read:
// `source` is what was opened.
Result<Cloned> clone_head(const Source& source, const contract::CloneRequest& request,
                          const std::string& vault_dir);

// The base pack of a clone that was made before; the repository is not looked at. Code::not_found when it is
// not there any more.
Result<Cloned> find_clone(const contract::CloneIdentity& identity, const std::string& vault_dir);

}  // namespace cofferdam::clone
