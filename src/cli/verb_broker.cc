#include "cli/verbs.h"
#include "egress/broker.h"

namespace cofferdam::cli {

Result<int> broker_verb(const BrokerOptions&) {
  return egress::broker_main();
}

}  // namespace cofferdam::cli
