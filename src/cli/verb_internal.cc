// The verbs that cofferdam starts itself with: its own program in other roles.
#include "cli/verbs.h"
#include "egress/broker.h"
#include "egress/gateway.h"
#include "egress/resolver.h"
#include "handoff/place_process.h"

namespace cofferdam::cli {

Result<int> gateway_verb(const GatewayOptions&) {
  return egress::gateway_main();
}

Result<int> broker_verb(const BrokerOptions&) {
  return egress::broker_main();
}

Result<int> resolver_verb(const ResolverOptions&) {
  return egress::resolver_main();
}

Result<int> place_verb(const PlaceOptions&) {
  return handoff::place_main();
}

}  // namespace cofferdam::cli
