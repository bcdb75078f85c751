// box-probe: one act per run, chosen by its first argument. It prints "works", or the name of the errno.
#pragma once

#include <cerrno>
#include <string>
#include <vector>

namespace box_probe {

using Args = std::vector<std::string>;

struct Act {
  const char* name;
  int (*run)(const Args& args);  // 0 when it worked, the errno otherwise
};

std::vector<Act> mount_acts();
std::vector<Act> process_acts();
std::vector<Act> kernel_acts();
std::vector<Act> socket_acts();
std::vector<Act> file_acts();
std::vector<Act> program_acts();

// Of a system call's result.
inline int outcome(long result) {
  return result < 0 ? errno : 0;
}
inline std::string argument(const Args& args, std::size_t i) {
  return i < args.size() ? args[i] : std::string();
}
inline long number(const Args& args, std::size_t i) {
  return i < args.size() ? std::stol(args[i], nullptr, 0) : 0;
}

}  // namespace box_probe
