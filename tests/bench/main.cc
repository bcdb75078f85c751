// The bench program: `cofferdam-bench upstream|client|gateway --name value ...`; run.py says which and when.
#include <signal.h>

#include <cstdio>
#include <exception>
#include <string_view>

#include "bench/verbs.h"

int main(int argc, char** argv) {
  namespace bench = cofferdam::bench;
  const std::string_view verb = argc > 1 ? argv[1] : "";
  ::signal(SIGPIPE, SIG_IGN);
  try {
    const bench::Options options(argc, argv);
    if (verb == "upstream") return bench::upstream_main(options);
    if (verb == "client") return bench::client_main(options);
    if (verb == "gateway") return bench::gateway_main(options);
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "cofferdam-bench: %s\n", failure.what());
    return 1;
  }
  std::fprintf(stderr, "usage: cofferdam-bench upstream|client|gateway --name value ...\n");
  return 2;
}
