// What a box's root is made of: the host's layout, or that of a pinned image. Read before; the planner is
// pure.
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
  std::vector<RootEntry> root_entries;   // beside /usr
  std::vector<std::string> etc_entries;  // of the fixed list that exists here, to be bound read-only
  std::string time_zone;                 // content of /etc/localtime; may be empty
  // Of an image: what else of it is in the box, by its path ("etc/ssl", "opt/java").
  std::vector<RootEntry> more = {};
  std::string source = "/host";            // where the storage has the tree that this is the layout of
  std::vector<ProgramFile> programs = {};  // shell "none": instead of the above
};

Result<HostLayout> read_host_layout();
// Of the image whose tree is at `tree`. Code::denied when no box can be made of it.
Result<HostLayout> read_image_layout(const std::string& tree);

}  // namespace cofferdam::sandbox
