// Cached work trees: what the tree of a head looks like when it is checked out, made once, and from then on
// only read. A tree is the folder `<state>/vault/<repository>/tree/<tree id>-<uid>-<gid>` with
//   tree/    the files, owned by the user that boxes run as, with an empty `.git` where the metadata go
//   index    git's index of them, refreshed in a box: it agrees with what every other box sees of them
//   boot     the boot that it was made in: what a crash of the host has left is not trusted
//   bytes    what it takes on the disk
//   in-use   locked (flock(2), shared) by supervisors and keepers that work with it; its time is the last use
// It comes into being by one rename. An eviction locks `in-use` exclusively, without waiting, and renames the
// folder away before it removes anything.
//
// Only trusted content is in it: git has written it in a box from objects of the head, and no agent ever has
// it other than read-only. Thread rules: free functions and values; any number of processes at once.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/in_use.h"
#include "base/process.h"
#include "base/result.h"
#include "contract/clone.h"

namespace cofferdam::workspace {

// Where the tree of a clone belongs. `owner`: who boxes run as, outside.
std::string cached_tree_folder(const std::string& state_dir, const contract::CloneIdentity& clone,
                               const UserIds& owner);

// Holds one cached tree against eviction as long as it, or a process that inherited its descriptor, lives.
struct CachedTree {
  std::string folder;
  UniqueFd lock;
  std::string tree_dir() const { return folder + "/tree"; }
  std::string index_path() const { return folder + "/index"; }
};

// None when there is no such tree that can be trusted.
Result<std::optional<CachedTree>> use_tree(const std::string& folder);

// A tree in the making. Goes with everything in it, unless finish() has put it in place.
class NewTree {
 public:
  // Beside `folder`, where it will be; its tree/ belongs to `owner`, if that is not us.
  static Result<NewTree> create(const std::string& folder, const std::optional<UserIds>& owner);
  std::string tree_dir() const { return made_ + "/tree"; }
  int index_fd() const { return index_.get(); }  // the box writes the index here
  // Whoever was first wins: the other's is as good.
  Status finish(const std::string& folder);

 private:
  explicit NewTree(Nursery nursery) : nursery_(std::move(nursery)) {}
  Nursery nursery_;  // an eviction tells it from what a killed process has left
  std::string made_;
  UniqueFd index_;
};

struct TreeEntry {
  std::string folder;
  std::uint64_t bytes = 0;
  std::int64_t last_use_ns = 0;  // since 1970
  bool in_use = false;
};
Result<std::vector<TreeEntry>> list_trees(const std::string& state_dir);

struct TreeEviction {
  std::vector<TreeEntry> removed;
  std::uint64_t leftovers = 0;  // of processes that were killed while they made or removed a tree
};
// Removes trees that nobody uses, least recently used first, until those that are left take `max_bytes` at
// most.
Result<TreeEviction> evict_trees(const std::string& state_dir, std::uint64_t max_bytes);

}  // namespace cofferdam::workspace
