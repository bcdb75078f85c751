// The gateway's loop: accepts what the box asks and serves it until told to stop.
#pragma once

#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "egress/credential.h"
#include "egress/gateway_setup.h"
#include "egress/token_store.h"

namespace cofferdam::egress {

// What gateway_main() has taken over from the supervisor and the broker.
struct ServerInput {
  UniqueFd listener;
  UniqueFd broker;                                   // its socket
  UniqueFd names;                                    // towards the resolver; may be invalid
  UniqueFd tunnels;                                  // the allow-list's listener; may be invalid
  UniqueFd capture;                                  // bodies are appended to it; may be invalid
  int events_fd = -1;                                // borrowed
  std::string filter;                                // system calls, compiled
  VendorCredential credential;                       // the broker's first word
  std::vector<BrokerLine> destination_brokers = {};  // as GatewayEnds
};

// Confines the process, writes {"ready":true,...} to `events_fd`, serves, and returns on SIGTERM once every
// request in flight is on record. An error before that line says why it cannot serve; one after it, that the
// events can no longer be written.
Status serve(const GatewaySetup& setup, const GatewayHooks& hooks, ServerInput input);

}  // namespace cofferdam::egress
