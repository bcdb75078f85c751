// The tests, and the gateway and broker that the integration tests start: a real process of its own, as in
// production.
#include <gtest/gtest.h>
#include <signal.h>

#include <string_view>

#include "egress/broker.h"
#include "egress/gateway.h"

// The gateway is not dumpable, and the leak checker of the sanitizer builds needs to trace the process.
extern "C" const char* __asan_default_options();
extern "C" const char* __asan_default_options() {
  return "detect_leaks=0";
}

int main(int argc, char** argv) {
  if (argc > 1 && std::string_view(argv[1]) == "internal-gateway") return cofferdam::egress::gateway_main();
  if (argc > 1 && std::string_view(argv[1]) == "internal-broker") return cofferdam::egress::broker_main();
  ::signal(SIGPIPE, SIG_IGN);  // vendors write to gateways that hang up
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
