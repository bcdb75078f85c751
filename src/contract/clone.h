// What the clone stage hands on: which commit of which repository, and the packs of exactly what it reaches.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace cofferdam::contract {

// How much of the history a box has.
enum class History { full, none };
const char* history_name(History history);

// Never a branch name. `id` is the SHA-256 over repository, head, base (when it is not the head) and tree.
struct CloneIdentity {
  std::string repository;  // canonical path of the git directory (the common one of linked work trees)
  std::string head;        // the trusted commit: full commit id
  std::string base;        // what the attempt works on: the head, or a commit of ours on top of it
  std::string tree;        // full tree id of base
  History history = History::full;
  std::string object_format;  // "sha1" or "sha256"
  std::string id;
  bool operator==(const CloneIdentity&) const = default;
};

// Packs in Cofferdam's vault whose union is exactly what `base` reaches (History::none: the commit and its
// tree).
struct BasePacks {
  std::string objects_dir;           // the vault's object folder that holds only these packs
  std::vector<std::string> packs;    // paths of *.pack, each with its *.idx beside it
  std::vector<std::string> shallow;  // commits whose parents are not there, as in git's "shallow" file
  std::uint64_t bytes = 0;           // packs and indexes together
};

// The index beside a "*.pack".
inline std::string index_of(const std::string& pack) {
  return pack.substr(0, pack.size() - 5) + ".idx";
}

// What the repository was like when the attempt was prepared, for the account: nothing decides by it.
struct SourceFacts {
  std::string kind;                   // "work-tree", "linked-work-tree", "submodule", "bare"
  bool shallow = false;               // the repository has no history behind some commits
  bool partial = false;               // it lacks objects that a promisor has
  std::uint64_t dirty_files = 0;      // tracked files that differ from the head
  std::uint64_t untracked_files = 0;  // not ignored
  std::uint64_t submodules = 0;       // gitlinks in the tree: preserved, never entered
  std::uint64_t lfs_files = 0;        // files of the tree under the lfs filter: pointers stay pointers
  bool operator==(const SourceFacts&) const = default;
};

}  // namespace cofferdam::contract
