// What of this host's layout a box's root depends on. Read once; the planner is pure.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace cofferdam::sandbox {

struct RootEntry {
  std::string name;       // "bin", "lib64", ...
  std::string link_text;  // of a symbolic link (merged /usr); empty for a folder
};

// A file of the host's that a box without a shell holds.
struct ProgramFile {
  std::string source;    // absolute, without symbolic links
  std::string target;    // where the box has it
  bool execute = false;  // a program or a loader; libraries are only mapped
  bool operator==(const ProgramFile&) const = default;
};

struct HostLayout {
  std::vector<RootEntry> root_entries;     // beside /usr
  std::vector<std::string> etc_entries;    // of the fixed list that exists here, to be bound read-only
  std::string time_zone;                   // content of /etc/localtime; may be empty
  std::vector<ProgramFile> programs = {};  // shell "none": instead of the above
};

Result<HostLayout> read_host_layout();

}  // namespace cofferdam::sandbox
