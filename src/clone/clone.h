// The clone stage: from the user's repository to packs in Cofferdam's vault that hold exactly what the
// trusted head reaches. The repository is only read, as its owner, and nothing it configures is run.
#pragma once

#include <string>

#include "base/result.h"
#include "clone/cache.h"
#include "clone/source.h"
#include "contract/clone.h"
#include "contract/invocation.h"

namespace cofferdam::clone {

struct Cloned {
  contract::CloneIdentity identity;
  contract::BasePacks packs;
  BaseUse use;  // keeps the packs in the vault
};

// Checks that request.head is a commit (and request.tree, if given, its tree) and makes, or finds, its base
// packs below `vault_dir`, which is made when missing. Any number of processes may do this at once.
// Code::not_found when objects are missing (partial clones), or request.work_tree is no longer in the vault.
// request.repository is not read: `source` is what was opened. `wait` may break the packing off with
// Code::conflict.
Result<Cloned> clone_head(const Source& source, const contract::CloneRequest& request,
                          const std::string& vault_dir, const git::Waiter& wait = {});

// The base packs of a clone that was made before; the repository is not looked at. Code::not_found when they
// are not there any more.
Result<Cloned> find_clone(const contract::CloneIdentity& identity, const std::string& vault_dir);

// What the source is like: for the account. What cannot be told is left at nothing; Code::conflict when
// source.stop_fd broke it off.
Result<contract::SourceFacts> source_facts(const Source& source, const contract::CloneIdentity& identity,
                                           const contract::BasePacks& packs);

}  // namespace cofferdam::clone
