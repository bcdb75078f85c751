// cofferdam-probe: forbidden acts, one per process, each by its name. An act says what came of it; it does
// not know whether it should work. Every act is harmless where it does work: gate/attacks.cc runs them in
// boxes that lack a layer.
#pragma once

#include <cerrno>
#include <cstdlib>
#include <string>
#include <vector>

namespace cofferdam::probe {

using Args = std::vector<std::string>;

struct Outcome {
  enum class Kind {
    allowed,
    denied,
    unavailable,  // nobody could do it on this kernel, so it shows nothing
    error,        // it could not be tried
  };
  Kind kind = Kind::error;
  std::string detail;  // the errno's name, or what was found
};

// Of a system call's result: allowed, or denied by errno.
Outcome outcome(long result);
Outcome denied_by(int error);
Outcome allowed_if(bool yes, const char* otherwise);
inline Outcome failed(const char* step) {
  return {Outcome::Kind::error, step};
}

struct Act {
  const char* name;
  Outcome (*run)(const Args& args);
};

std::vector<Act> state_acts();
std::vector<Act> file_acts();
std::vector<Act> mount_acts();
std::vector<Act> process_acts();
std::vector<Act> filter_acts();
std::vector<Act> socket_acts();

inline std::string argument(const Args& args, std::size_t i) {
  return i < args.size() ? args[i] : std::string();
}
// Decimal, 0x or 0; 0 for what is no number.
inline long number(const Args& args, std::size_t i) {
  return i < args.size() ? static_cast<long>(std::strtoull(args[i].c_str(), nullptr, 0)) : 0;
}

// At most `max` bytes; empty when it cannot be read.
std::string slurp(const std::string& path, std::size_t max);

}  // namespace cofferdam::probe
