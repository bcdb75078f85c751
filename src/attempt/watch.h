// The watch over a running box: output, gateway, cancel, deadline, until the box is gone.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "agent/decoder.h"
#include "attempt/account.h"
#include "attempt/cancel.h"
#include "base/fd.h"
#include "base/file.h"
#include "egress/budget.h"
#include "egress/gateway.h"
#include "sandbox/native/box.h"

namespace cofferdam::attempt {

// What the box writes: pipes to read, and the files of the attempt that keep it.
struct Output {
  UniqueFd out;
  UniqueFd err;
  UniqueFd out_file;
  UniqueFd err_file;
  std::uint64_t max_bytes = 0;  // both together
};

struct WatchInput {
  Account& account;
  CancelSources& cancel;
  sandbox::Box& box;
  egress::Gateway* gateway;  // null without egress
  agent::Decoder& decoder;
  Output output;
  std::chrono::steady_clock::time_point deadline;  // ours, behind init's own
  std::chrono::milliseconds grace;
  egress::Budget budget;
  bool priced = false;  // the cost of the tokens is known
};

// Returns when the box is gone and its output has been read. An Error only when the end of the box could not
// be established within the bound: the outcome is then `lost`.
Status watch(WatchInput input);

}  // namespace cofferdam::attempt
