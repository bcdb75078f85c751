// The snapshot box: git, in a sealed box without network, turns the work tree that the agent left into
// objects.
//
// The work tree and the git metadata are read-only there; objects, index and result.pack go to /out. Stat
// data are never believed: every file that could have been changed is hashed anew; with an overlay these are
// the ones in its upper layer, otherwise all. What cannot be carried is a finding, never silence.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "contract/profile.h"
#include "contract/result.h"

namespace cofferdam::handoff {

// More than this on the box's standard output is not a record: the bound for whoever reads it.
inline constexpr std::size_t kMaxSnapshotRecord = 16U << 20U;

struct SnapshotInput {
  std::string base_tree;                       // full tree id of the trusted head
  bool overlay = false;                        // the storage has an upper layer above the cached base tree
  std::uint64_t max_file_bytes = 1ULL << 30U;  // a larger file to carry (sparse ones too) is refused
  std::uint64_t scratch_bytes = 2ULL << 30U;   // its lists: some 20 bytes and the path, of each file
  std::uint64_t scratch_inodes = 10'000;
  std::uint64_t work_bytes = 0;  // what the work storage is bounded to
  std::uint64_t work_inodes = 0;
  std::chrono::milliseconds deadline = std::chrono::minutes(10);
  std::chrono::milliseconds grace = std::chrono::seconds(2);
  int stdout_fd = -1;  // borrowed: where the record goes
  int stderr_fd = -1;  // borrowed: git's own words when it fails; -1: nowhere
};

// Where the script finds things. The defaults are the places in a box; tests run it without one.
struct ScriptPaths {
  std::string work = "/workspace";
  std::string metadata = "/workspace/.git";
  std::string upper = "/upper";
  std::string output = "/out";
  std::string scratch = "/tmp";
};

std::vector<std::string> snapshot_argv(const SnapshotInput& input, const ScriptPaths& paths);
contract::Profile snapshot_profile(const SnapshotInput& input);

struct Snapshot {
  std::string tree;           // equal to the base tree: nothing was changed, there is no result.pack
  std::uint64_t objects = 0;  // in /out/result.pack
  std::uint64_t ignored_files = 0;
  std::vector<std::string> ignored;         // the first 200 of them, in order
  std::vector<contract::Finding> findings;  // at most 200
  std::uint64_t more_findings = 0;          // beyond these
};

// Strict. Code::denied or Code::exhausted when the box refused the work tree, with the path and the reason;
// Code::protocol for anything that is not exactly a record (the box ended early, or lied).
Result<Snapshot> decode_snapshot(std::string_view bytes);

}  // namespace cofferdam::handoff
