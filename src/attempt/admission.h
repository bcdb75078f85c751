// The queue: an attempt that was taken in while the capacity is taken waits for its turn.
#pragma once

#include <chrono>
#include <functional>

#include "attempt/account.h"
#include "attempt/cancel.h"
#include "base/result.h"
#include "ledger/ledger.h"

namespace cofferdam::attempt {

struct QueueInput {
  Account& account;
  CancelSources& cancel;
  ledger::Capacity capacity;
  std::chrono::milliseconds longest;  // how long it waits at most
  // Called once per round: ends what takes capacity without anybody behind it.
  std::function<void()> sweep;
};

// Returns at once for an attempt that does not wait. An Error means that it did not get in; a request to
// cancel, the end of the wait and a context that has moved on are causes in the account.
Status wait_for_turn(const QueueInput& input);

}  // namespace cofferdam::attempt
