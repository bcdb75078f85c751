// The parts of the bench program, each a process of its own while it measures.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace cofferdam::bench {

// `--name value` pairs.
class Options {
 public:
  Options(int argc, char** argv) {
    for (int i = 2; i + 1 < argc; i += 2) values_[argv[i]] = argv[i + 1];
  }
  std::string text(const std::string& name) const {
    auto found = values_.find("--" + name);
    return found == values_.end() ? "" : found->second;
  }
  std::uint64_t number(const std::string& name, std::uint64_t otherwise) const {
    const std::string value = text(name);
    return value.empty() ? otherwise : std::stoull(value);
  }

 private:
  std::map<std::string, std::string> values_;
};

// A TLS server on loopback that answers what the plan in a body says: `--ca FILE` is written. Until SIGTERM.
int upstream_main(const Options& options);
// Loads one proxy and prints what it measured as JSON.
int client_main(const Options& options);
// Plays the supervisor of one real gateway process until its standard input ends.
int gateway_main(const Options& options);

}  // namespace cofferdam::bench
