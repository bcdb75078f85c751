// The watch over a running box: output, gateway, cancel, deadlines, limits, until the box is gone.
#pragma once

#include <chrono>

#include "agent/decoder.h"
#include "attempt/account.h"
#include "attempt/cancel.h"
#include "attempt/checkpoint.h"
#include "attempt/output.h"
#include "attempt/source_look.h"
#include "contract/invocation.h"
#include "egress/budget.h"
#include "egress/gateway.h"
#include "sandbox/native/box.h"

namespace cofferdam::attempt {

struct WatchInput {
  Account& account;
  CancelSources& cancel;
  sandbox::Box& box;
  egress::Gateway* gateway;  // null without egress
  agent::Decoder& decoder;
  OutputStream out;
  OutputStream err;
  const contract::Invocation& invocation;
  std::chrono::steady_clock::time_point deadline;  // ours, behind init's own
  Checkpoints& checkpoints;
  SourceReport& source;
  bool steps = false;   // a commit for each step that the agent says it has done
  bool priced = false;  // the cost of the tokens is known
};

// Returns when the box is gone and its output has been read. An Error only when the end of the box could not
// be established within the bound: the outcome is then `lost`.
Status watch(WatchInput input);

}  // namespace cofferdam::attempt
