#include "cli/verbs.h"
#include "egress/gateway.h"

namespace cofferdam::cli {

Result<int> gateway_verb(const GatewayOptions&) {
  return egress::gateway_main();
}

}  // namespace cofferdam::cli
