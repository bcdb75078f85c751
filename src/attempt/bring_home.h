// From the settled box to the change: snapshot, verification, commit, publication.
#pragma once

#include <string>

#include "attempt/account.h"
#include "attempt/run.h"
#include "clone/clone.h"
#include "contract/clone.h"
#include "handoff/store.h"
#include "sandbox/native/box.h"

namespace cofferdam::attempt {

struct BringHomeInput {
  Account& account;
  const Host& host;
  const contract::Invocation& invocation;
  const clone::Source& source;
  const clone::Cloned& cloned;
  const sandbox::BoxHost& boxes;
  contract::StorageRef storage;
  std::string attempt_dir;
  const sandbox::Interrupt& interrupt;
};

// A read-only phase proves by tree id that nothing changed. In implementation the change is committed into
// the attempt's own store whatever the outcome, and published only for `completed`. Failures are in the
// account; an Error means that the snapshot could not be taken.
Status bring_home(const BringHomeInput& input);

}  // namespace cofferdam::attempt
