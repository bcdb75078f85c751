// The command line. The only header that stands before CLI11, which parse.cc alone includes.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/options.h"

namespace cofferdam::cli {

// Either a command, or what to print and the code to leave with (help, version, usage errors).
struct Parsed {
  std::optional<Command> command;
  int exit_code = 0;
  std::string out;
  std::string err;
};

// `arguments` without the program's name.
Parsed parse(const std::vector<std::string>& arguments);

}  // namespace cofferdam::cli
