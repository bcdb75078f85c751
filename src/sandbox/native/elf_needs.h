// Which files of the host a program needs to start, by its own ELF headers (elf(5)): read, never executed.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "contract/profile.h"
#include "sandbox/native/host_layout.h"

namespace cofferdam::sandbox {

struct ElfFacts {
  bool elf = false;                 // of this machine, a program or a library
  bool excessive = false;           // it names more than any program needs; what follows is cut
  std::string interpreter;          // the dynamic loader; empty: none
  std::vector<std::string> needed;  // names of libraries
  std::vector<std::string> paths;   // folders of RPATH and RUNPATH, as they are in the file
};
// At most 1 MiB of each table is read; a file that is no such ELF has elf == false.
Result<ElfFacts> read_elf(const std::string& path);

// What a box whose shell is "none" holds beside the agent's folder: for every program in that folder, and for
// the profile's own program when it is elsewhere, the loader and all libraries that they name. Code::denied
// when the program is not one that can be there alone (a script, a name without a path).
Result<std::vector<ProgramFile>> program_files(const contract::Profile& profile);

}  // namespace cofferdam::sandbox
