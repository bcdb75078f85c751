// An attempt's storage: one user and mount namespace, held by a keeper process. In it are the work tree,
// bounded in bytes and inodes, the git metadata, and the way out. Boxes are nested namespaces in it and have
// no right over its mounts.
//
// Once keep() has been called the keeper outlives a supervisor that goes away, for a bounded time, so that a
// recovery can take the storage over.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/process.h"
#include "base/process_id.h"
#include "base/result.h"
#include "contract/profile.h"
#include "workspace/metadata.h"
#include "workspace/plan_keeper.h"

namespace cofferdam::workspace {

struct StorageOptions {
  std::string init;               // path of cofferdam-init
  std::optional<UserIds> run_as;  // when we are root
  std::uint64_t work_bytes = 0;
  std::uint64_t work_inodes = 0;
  std::chrono::milliseconds linger{0};  // how long the keeper outlives us, once keep() has been called
  // Git metadata and the folder with the base packs; empty: none.
  std::vector<MetadataFile> metadata = {};
  std::string objects_dir = {};
  std::string image_dir = {};  // tree of the agent's root; empty: the host's
  // Where the work tree comes from. The folder is not empty unless it is a checkout.
  TreeForm form = TreeForm::checkout;
  std::string tree_dir = {};
  std::string index_path = {};  // of the tree's index; empty: none yet
  // What holds the work: a mount (host_mount.h; borrowed), or a folder that is a disk of its own; neither:
  // memory.
  int disk_fd = -1;
  std::string disk_dir = {};
  std::vector<int> held_fds = {};  // borrowed: locks that the keeper holds as long as it lives
};

// Owns the keeper: the storage is given back when this is destroyed.
class Storage {
 public:
  // An overlay that does not do on this storage is a checkout instead: tree_form() and tree_problem() say so.
  static Result<Storage> create(const StorageOptions& options);
  // Takes over what another process left. Code::not_found when the keeper has ended, and the work with it;
  // other errors say nothing about it.
  static Result<Storage> take_over(const ProcessId& keeper);
  // Which process holds the storage: to be written down before keep().
  const ProcessId& keeper() const { return id_; }
  Status keep();
  // Only of a storage that was created here.
  TreeForm tree_form() const { return form_; }
  const std::string& tree_problem() const { return problem_; }  // empty: it is what was asked for
  contract::StorageRef ref() const { return {userns_.get(), mntns_.get()}; }
  // Processes of boxes in this storage, as far as they can be seen: user_namespaces(7), ioctl_ns(2). PID 1 of
  // a box cannot be seen by an unprivileged user, but its launcher can, which ends after it.
  Result<std::vector<pid_t>> processes() const;
  // Sends SIGKILL to all of them.
  Status kill_processes() const;
  // Leaves the keeper to itself: it ends by its own linger time, or by whoever takes the storage over.
  void abandon();
  // Ends the keeper and waits for it; every box of the storage has to be gone.
  Status release();
  // What is left when that fails, for the record.
  std::string describe() const;

 private:
  Storage() = default;
  Status open_namespaces();
  ProcessId id_;
  TreeForm form_ = TreeForm::checkout;
  std::string problem_;
  Child keeper_;      // not of a storage that was taken over
  UniqueFd control_;  // likewise
  UniqueFd pidfd_;    // only of a storage that was taken over
  UniqueFd userns_;
  UniqueFd mntns_;
};

}  // namespace cofferdam::workspace
