// The gateway's loop: accepts what the box asks and serves it until told to stop.
#pragma once

#include "base/fd.h"
#include "base/result.h"
#include "egress/credential.h"
#include "egress/gateway_setup.h"

namespace cofferdam::egress {

struct ServerInput {
  UniqueFd listener;
  int events_fd = -1;           // borrowed
  UniqueFd broker;              // its socket
  VendorCredential credential;  // its first word
};

// Writes {"ready":true} to `events_fd`, serves, and returns on SIGTERM once every request in flight is on
// record. An error before that line says why it cannot serve; one after it, that the events can no longer be
// written.
Status serve(const GatewaySetup& setup, ServerInput input);

}  // namespace cofferdam::egress
