// The collect box: a second sealed box verifies the pack of the snapshot box (links, format, bounds) in a
// quarantine of its own and hands the verified pack and index out through two write-only descriptors.
// Not needed when the snapshot's tree is the base tree.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "contract/profile.h"
#include "contract/result.h"
#include "handoff/snapshot.h"

namespace cofferdam::handoff {

inline constexpr std::size_t kMaxCollectRecord = 80U << 20U;

struct CollectBounds {
  std::uint64_t pack_bytes = 1ULL << 30U;
  std::uint64_t inflated_bytes = 4ULL << 30U;
  std::uint64_t memory_bytes = 2ULL << 30U;  // address space of each process in the box
  std::uint64_t cpu_seconds = 300;           // of each process in the box
  std::uint64_t paths = 100'000;             // changed ones
  std::uint64_t depth = 64;                  // folders above a changed file
};

struct CollectInput {
  std::string base_tree;
  std::string tree;  // as the snapshot box said: not believed, verified
  CollectBounds bounds;
  std::uint64_t scratch_bytes = 2ULL << 30U;  // holds the quarantine
  std::uint64_t scratch_inodes = 10'000;
  std::uint64_t work_bytes = 0;
  std::uint64_t work_inodes = 0;
  std::chrono::milliseconds deadline = std::chrono::minutes(10);
  std::chrono::milliseconds grace = std::chrono::seconds(2);
  int pack_fd = -1;  // borrowed, open for writing: AttemptStore::open_incoming()
  int index_fd = -1;
  int stdout_fd = -1;
  int stderr_fd = -1;
};

std::vector<std::string> collect_argv(const CollectInput& input, const ScriptPaths& paths);
contract::Profile collect_profile(const CollectInput& input);

// One changed path, as git's raw diff of the two trees has it.
struct Change {
  contract::ChangedFile file;
  std::string mode;  // the new one, six octal digits
  std::string id;    // of the new object
};

struct Collected {
  std::uint64_t pack_bytes = 0;
  std::uint64_t objects = 0;
  std::uint64_t inflated_bytes = 0;
  std::vector<Change> changes;  // all, at most CollectBounds::paths
  // What the new tree has in the folders on the way to each added file, up to 4 MiB.
  std::vector<std::string> beside;
  std::map<std::string, std::string> links;  // of changed symbolic links: object id -> target, up to 4 MiB
};

// Strict, as decode_snapshot(): Code::exhausted for a bound, Code::denied for what is never taken (a gitlink
// added, moved or removed; a path that is not plain), Code::protocol otherwise.
Result<Collected> decode_collect(std::string_view bytes);

}  // namespace cofferdam::handoff
