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

struct HostLayout {
  std::vector<RootEntry> root_entries;   // beside /usr
  std::vector<std::string> etc_entries;  // of the fixed list that exists here, to be bound read-only
  std::string time_zone;                 // content of /etc/localtime; may be empty
};

Result<HostLayout> read_host_layout();

}  // namespace cofferdam::sandbox
