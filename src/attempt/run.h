// One attempt from invocation to result: the path of ARCHITECTURE.md in one function.
#pragma once

#include <functional>
#include <string>

#include "base/result.h"
#include "contract/config.h"
#include "contract/event.h"
#include "contract/invocation.h"
#include "contract/result.h"

namespace cofferdam::attempt {

// What the attempt needs to know of this host and user; made once by the CLI.
struct Host {
  contract::Config config;
  std::string state_dir;   // exists, mode 0700, ours
  std::string program;     // absolute path of cofferdam itself (the gateway runs from it)
  std::string init;        // absolute path of cofferdam-init
  std::string agents_dir;  // absolute; holds node_modules; may not exist
};

struct Controls {
  // Called for every event, in order, after it is in the ledger. Must not block for long.
  std::function<void(const contract::Event&)> on_event;
  // A stream of lines {"cancel":{"reason":"..."}}; -1: none. Borrowed.
  int cancel_fd = -1;
  std::string cancel_pending;  // bytes of that stream which were read already
  bool cancel_on_eof = false;  // otherwise the end of that stream means nothing
};

// Runs the attempt to its end. An Error means that it was never admitted (nothing was started or left
// behind); everything later is in the result. Blocks SIGINT, SIGTERM and SIGHUP while it runs and takes them
// as requests to cancel. One attempt per process at a time; call from the main thread.
Result<contract::ResultRecord> run(const Host& host, const contract::Invocation& invocation,
                                   const Controls& controls);

}  // namespace cofferdam::attempt
