#include "cli/verbs.h"
#include "egress/gateway.h"
#include "egress/resolver.h"

namespace cofferdam::cli {

Result<int> gateway_verb(const GatewayOptions&) {
  return egress::gateway_main();
}

Result<int> resolver_verb(const ResolverOptions&) {
  return egress::resolver_main();
}

}  // namespace cofferdam::cli
