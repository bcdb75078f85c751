// The vault's base packs as a cache: who needs one, what they take, and which go when they take too much.
//
// A base folder is `<state>/vault/<repository>/base/<name>`; the name begins with the head. Its file `in-use`
// is locked (flock(2), shared) by everybody who works with the pack, and its modification time is the last
// use. An eviction takes that lock exclusively, without waiting, and renames the folder away before it
// removes anything, so nobody ever finds half a pack. A base that a kept attempt's store borrows from is
// never evicted.
//
// Thread rules: free functions and values; any number of processes may do all of this at once.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/file.h"
#include "base/result.h"

namespace cofferdam::clone {

// Holds one base pack against eviction as long as it lives. Move-only; empty after a move.
class BaseUse {
 public:
  BaseUse() = default;
  explicit BaseUse(UniqueFd lock);
  BaseUse(BaseUse&&) noexcept = default;
  BaseUse& operator=(BaseUse&& other) noexcept;
  BaseUse(const BaseUse&) = delete;
  BaseUse& operator=(const BaseUse&) = delete;
  ~BaseUse();

 private:
  UniqueFd lock_;
};

// Code::not_found when there is no such base, or no longer.
Result<BaseUse> use_base(const std::string& folder);

// A pack or an index that more than one base has (a hard link): its bytes go with the last of them.
struct SharedFile {
  std::uint64_t inode = 0;
  std::uint64_t bytes = 0;
};

struct BaseEntry {
  std::string key;               // "<repository>/base/<name>": its place in the vault
  std::string head;              // the trusted commit
  std::string repository;        // the git directory that it came from; empty when that is not on record
  std::uint64_t bytes = 0;       // without what it shares
  std::int64_t last_use_ns = 0;  // since 1970
  bool in_use = false;           // by a process, at that moment
  std::vector<std::string> borrowers = {};  // attempts whose stores need it
  std::vector<SharedFile> shared = {};
};

// Every base of the vault below `state_dir`, in the order of their keys.
Result<std::vector<BaseEntry>> list_bases(const std::string& state_dir);

struct CacheBounds {
  // What the bases that nobody needs may take together.
  std::uint64_t max_bytes = 0;
  // Heads of attempts without a result: theirs is needed, even while no process holds it (a recovery will).
  std::set<std::string> heads = {};
};

// Which entries to evict, as indices: least recently used first, until the rest is within the bound.
std::vector<std::size_t> choose_evicted(const std::vector<BaseEntry>& entries, const CacheBounds& bounds);

struct Eviction {
  std::vector<BaseEntry> removed;
  std::uint64_t leftovers = 0;  // folders of processes that were killed while they made or removed a base
  bool elsewhere = false;       // another process is evicting: nothing was done here
};
Result<Eviction> evict_bases(const std::string& state_dir, const CacheBounds& bounds);

}  // namespace cofferdam::clone
