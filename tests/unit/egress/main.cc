// The tests, and the processes that the integration tests start: gateway, broker and resolver, as in
// production.
#include <gtest/gtest.h>
#include <signal.h>

#include <string>
#include <string_view>

#include "egress/broker.h"
#include "egress/gateway.h"
#include "unit/egress/probes.h"
#include "unit/egress/scripted_resolver.h"

// The gateway is not dumpable, and the leak checker of the sanitizer builds needs to trace the process.
extern "C" const char* __asan_default_options();
extern "C" const char* __asan_default_options() {
  return "detect_leaks=0";
}

int main(int argc, char** argv) {
  namespace egress = cofferdam::egress;
  const std::string program = argc > 0 ? argv[0] : "";
  const std::string_view verb = argc > 1 ? argv[1] : "";
  if (verb == "internal-gateway") return egress::gateway_main(egress::testing::hooks_for(program));
  if (verb == "internal-broker") return egress::broker_main();
  if (verb == "internal-resolver") return egress::testing::resolver_for(program);
  ::signal(SIGPIPE, SIG_IGN);  // vendors write to gateways that hang up
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
