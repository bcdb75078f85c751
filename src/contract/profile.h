// Profile: what a box must be. Data, made by the stages that need a box and read by the backend, which turns
// it into a plan. No host path of the user's enters a box: sources are /usr and friends, the attempt's
// storage, and the agent's own folder.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/process.h"
#include "contract/result.h"

namespace cofferdam::contract {

enum class Access { none, read_only, read_write };

// The namespaces that hold an attempt's storage; borrowed descriptors of /proc/PID/ns/{user,mnt}.
struct StorageRef {
  int userns_fd = -1;
  int mntns_fd = -1;
};

// A file that the program finds in its HOME.
struct HomeFile {
  std::string name;  // relative to HOME; the folders on the way are made
  std::string content;
  bool operator==(const HomeFile&) const = default;
};

// The pinned tree that a box's root comes from. The storage has it at /image.
struct ProfileImage {
  std::string id;    // "sha256:..."
  std::string tree;  // on the host; it was compared with its manifest for this very use
  // Files of it, relative, by which the backend finds out whether the box really has this tree.
  std::vector<std::string> landmarks;
};

struct Profile {
  std::string kind;  // "prepare", "agent", "command", "snapshot", "collect": for messages and the account
  std::vector<std::string> argv;
  std::vector<std::string> env;
  std::string cwd = "/workspace";
  // none: the root holds the agent's own programs and libraries alone, and nothing else can be executed.
  Shell shell = Shell::sandboxed;
  // The attempt's storage.
  Access work = Access::none;      // at /workspace
  Access metadata = Access::none;  // at /workspace/.git
  Access output = Access::none;    // at /out: the snapshot's objects, the collected pack
  // At /upper, never writable: what the agent wrote above the cached tree, if the storage has such a layer.
  Access upper = Access::none;
  // None: the host's programs and libraries.
  std::optional<ProfileImage> image = {};
  // Its program is one of ours and comes from the host, whatever the agent's box is made of: the control
  // pinned-root is not asked of it.
  bool host_programs = true;
  // A read-only folder of the agent's own files at /opt/agent; empty: none.
  std::string agent_dir;
  std::vector<HomeFile> home_files;
  std::uint64_t scratch_bytes = 0;
  std::uint64_t scratch_inodes = 0;
  std::uint64_t work_bytes = 0;  // what the storage was bounded to: the probes compare
  std::uint64_t work_inodes = 0;
  bool work_in_memory = true;  // otherwise a disk holds the work tree
  // Loopback TCP ports whose listening sockets are handed out of the box.
  std::vector<std::uint16_t> listeners;
  std::chrono::milliseconds deadline{0};  // init enforces it by itself, then the grace
  std::chrono::milliseconds grace{0};
  std::uint64_t file_size_limit = 0;  // RLIMIT_FSIZE in bytes; 0: none
  // Of all programs in the box together, watched by init and bounded by the box's control group. 0: a box of
  // ours, which has bounds of its own (sandbox/native/cgroup.h).
  std::uint64_t memory_bytes = 0;
  std::uint64_t pids = 0;  // processes and threads
  // Names of layers (init/plan.h) that this box is built without: of the gate only, whose programs are ours
  // and harmless, so that it shows what each layer stops.
  std::vector<std::string> without;
  // Standard streams and further descriptors of the program; sources are borrowed until the box has started.
  std::vector<FdMapping> fds;
};

}  // namespace cofferdam::contract
