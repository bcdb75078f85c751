// The step "workspace": the storage of an attempt, with the trusted head in it.
#pragma once

#include <chrono>
#include <string>

#include "attempt/run.h"
#include "base/result.h"
#include "clone/clone.h"
#include "contract/result.h"
#include "image/store.h"
#include "sandbox/native/box.h"
#include "workspace/storage.h"

namespace cofferdam::attempt {

struct WorkspaceInput {
  const Host& host;
  const contract::Invocation& invocation;
  const clone::Cloned& cloned;
  const sandbox::BoxHost& boxes;
  std::string attempt_dir;
  const image::ImageUse* image;         // the agent's root; null: the host's
  const sandbox::Interrupt& interrupt;  // a request to cancel ends it
  std::chrono::steady_clock::time_point deadline;
};

struct Workspace {
  workspace::Storage storage;
  contract::StorageFacts facts;
};

// The keeper is on record, and told to stay, before anything is written into the storage. An Error leaves
// nothing but the attempt's folder and what the vault has gained.
Result<Workspace> make_workspace(const WorkspaceInput& input);

}  // namespace cofferdam::attempt
