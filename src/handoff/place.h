// The last step of applying a change: into the user's index, work tree and branch. All of it runs as the
// owner of the repository, in a process of its own, and either happens or does not.
//
// Files that go are moved into a folder of ours in the git directory, new ones are made there and moved out,
// so an error puts everything back. When the process itself is killed, the folder stays, and the next one to
// apply something (or mend()) puts everything back, or finishes if the branch had moved already.
//
// Who parses what: the contents that an agent made are bytes that are copied and hashed; paths are opened
// component by component below the work tree (openat2(2), RESOLVE_BENEATH and RESOLVE_NO_SYMLINKS).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace cofferdam::handoff {

enum class PlaceKind : char { absent = '-', file = 'f', executable = 'x', link = 'l' };

// What stands somewhere: its kind, and the SHA-256 of its bytes (of a link: of its target). "-" for nothing.
std::string fingerprint(PlaceKind kind, std::string_view bytes);

struct PlaceFile {
  std::string path;                    // raw bytes, relative to the work tree
  PlaceKind kind = PlaceKind::absent;  // what it becomes
  std::uint64_t offset = 0;            // where its bytes are in the content file
  std::uint64_t size = 0;
  std::string mode;                // for the index, as git writes it; "0" when absent
  std::string id;                  // object id; zeros when absent
  std::string becomes;             // fingerprint of it
  std::vector<std::string> known;  // fingerprints that may stand there; "d": a folder that goes too
  std::vector<std::string>
      known_in_index;  // "MODE ID" that the index may have where it differs from old_head
};

struct Placement {
  bool dry_run = false;  // looks, and changes nothing
  std::string attempt_id;
  std::string git_dir;  // of the work tree: HEAD and index
  std::string work_tree;
  std::string branch;  // full ref; empty when HEAD is detached
  std::string old_head;
  std::string new_head;  // its objects are in the repository
  std::string message;   // for the reflogs that there are
  std::string name;      // who the reflogs say it was
  std::string email;
  std::vector<PlaceFile> files;
};

// Why nothing was done: `kind` is "dirty", "staged" or "unmerged".
struct Obstacle {
  std::string kind;
  std::string path;
  std::string detail;
};

std::string encode_placement(const Placement& placement);
Result<Placement> decode_placement(std::string_view json);

// Contents are read from `content_fd` (pread(2)). No obstacles: it is done, or for a dry run could be.
Result<std::vector<Obstacle>> place(const Placement& placement, int content_fd);

// Ends what a killed process left in that git directory. What it did, in one line; empty when there was
// nothing.
Result<std::string> mend(const std::string& git_dir);

}  // namespace cofferdam::handoff
