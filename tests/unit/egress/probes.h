// What code inside the gateway can and cannot do. A gateway that is started under the name probe-NAME runs
// the probe NAME once it is confined, and says what came of it instead of being ready; under control-NAME it
// does the same before it is confined.
#pragma once

#include <string>

#include "egress/gateway.h"

namespace cofferdam::egress::testing {

GatewayHooks hooks_for(const std::string& program);

}  // namespace cofferdam::egress::testing
