// From the settled box to the change: snapshot, verification, commit, publication.
#pragma once

#include <string>

#include "attempt/account.h"
#include "attempt/run.h"
#include "clone/clone.h"
#include "contract/clone.h"
#include "contract/lifecycle.h"
#include "handoff/publish.h"
#include "handoff/store.h"
#include "sandbox/native/box.h"

namespace cofferdam::attempt {

struct BringHomeInput {
  Account& account;
  const Host& host;
  const contract::Invocation& invocation;
  const clone::Source* source;  // null: only when nothing can be published
  const clone::Cloned& cloned;
  const sandbox::BoxHost& boxes;
  contract::StorageRef storage;  // not looked at once the change is committed
  std::string attempt_dir;
  const sandbox::Interrupt& interrupt;
  contract::Stage reached = contract::Stage::settled;  // further when a recovery goes on with what was begun
  std::string claimed_ref = {};                        // of a claim that was made before
};

handoff::PublishInput publication_of(const clone::Source& source, const std::string& base_head,
                                     const std::string& ref, const std::string& commit);

// A read-only phase proves by tree id that nothing changed. In implementation the change is committed into
// the attempt's own store whatever the outcome, and published only for `completed`. Failures are in the
// account; an Error means that the snapshot could not be taken.
Status bring_home(const BringHomeInput& input);

}  // namespace cofferdam::attempt
