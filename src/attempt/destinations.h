// The allow-list of one attempt: what the invocation names, with what the configuration knows of it.
#pragma once

#include <string>
#include <vector>

#include "attempt/run.h"
#include "base/result.h"
#include "contract/invocation.h"
#include "egress/broker.h"
#include "egress/transport.h"

namespace cofferdam::attempt {

struct ReadiedDestinations {
  std::vector<egress::Destination> policy;
  std::vector<egress::Broker> brokers;  // of those with a credential, in their order
};

// Starts a broker for each credential. Code::denied for one that the configuration does not have for this
// very host and port: a credential is never shown to another.
Result<ReadiedDestinations> ready_destinations(const Host& host, const contract::Invocation& invocation);

}  // namespace cofferdam::attempt
