// The steps by which what an agent left becomes a commit in the attempt's own store. At the end of an
// attempt, and for each checkpoint while its agent runs; the account is not their business.
//
// Thread rules: no state; one at a time per attempt, since all use the storage's way out.
#pragma once

#include <optional>
#include <string>

#include "attempt/run.h"
#include "clone/clone.h"
#include "contract/invocation.h"
#include "handoff/collect.h"
#include "handoff/judge.h"
#include "handoff/snapshot.h"
#include "handoff/store.h"
#include "sandbox/native/box.h"

namespace cofferdam::attempt {

// What is worked on; all that is borrowed outlives it.
struct WorkSource {
  const Host& host;
  const contract::Invocation& invocation;
  const clone::Cloned& cloned;
  const sandbox::BoxHost& boxes;
  contract::StorageRef storage;
  std::string attempt_dir;
  bool overlay = false;  // the storage has an upper layer
};

// "<attempt_dir>/store.git"
std::string store_path(const std::string& attempt_dir);

Result<handoff::Snapshot> take_snapshot(const WorkSource& from, const sandbox::Interrupt& interrupt);

struct CollectedWork {
  handoff::AttemptStore store;
  handoff::Collected collected;
  std::string pack;  // its name in the store; empty: there was nothing new
};
// Verifies the pack in a box of its own and takes it into the attempt's store, which is made if there is
// none.
Result<CollectedWork> collect_work(const WorkSource& from, const std::string& tree,
                                   const sandbox::Interrupt& interrupt);

// The commit's id. `parent` and `tree` have to be in the store.
Result<std::string> commit_work(const WorkSource& from, const handoff::AttemptStore& store,
                                const std::string& tree, const std::string& parent,
                                const std::string& message);

// Of a work tree that cannot become a commit nothing is lost: its files go into an archive, unread by
// anybody. The error, with where that is or why there is none; Code::denied once they are kept, since nothing
// is to be tried again then.
Error keep_files(const WorkSource& from, const sandbox::Interrupt& interrupt, Error why);

}  // namespace cofferdam::attempt
