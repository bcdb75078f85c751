// The gateway's loop: accepts what the box asks and serves it until told to stop.
#pragma once

#include <string>

#include "base/fd.h"
#include "base/result.h"
#include "egress/gateway_setup.h"

namespace cofferdam::egress {

struct ServerFds {
  UniqueFd listener;
  UniqueFd names;      // towards the resolver; may be invalid
  UniqueFd tunnels;    // the allow-list's listener; may be invalid
  int events = -1;     // borrowed
  std::string filter;  // system calls, compiled
};

// Confines the process, writes {"ready":true,...} to `events`, serves, and returns on SIGTERM once every
// request in flight is on record. An error before that line says why it cannot serve; one after it, that the
// events can no longer be written.
Status serve(const GatewaySetup& setup, const GatewayHooks& hooks, ServerFds fds);

}  // namespace cofferdam::egress
