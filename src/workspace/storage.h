// An attempt's storage: one user and mount namespace, held by a keeper process, with three bounded tmpfs in
// it: the work tree (bytes and inodes as the invocation says), the git metadata, and the way out. Boxes are
// nested namespaces in it and have no right over its mounts.
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

namespace cofferdam::workspace {

struct StorageOptions {
  std::string init;               // path of cofferdam-init
  std::optional<UserIds> run_as;  // when we are root
  std::uint64_t work_bytes = 0;
  std::uint64_t work_inodes = 0;
  std::uint64_t base_bytes = 0;         // size of the base pack: the metadata's bound follows from it
  std::chrono::milliseconds linger{0};  // how long the keeper outlives us, once keep() has been called
};

// Owns the keeper: the storage is given back when this is destroyed.
class Storage {
 public:
  static Result<Storage> create(const StorageOptions& options);
  // Takes over what another process left. Code::not_found when the keeper has ended, and the work with it;
  // other errors say nothing about it.
  static Result<Storage> take_over(const ProcessId& keeper);
  // Which process holds the storage: to be written down before keep().
  const ProcessId& keeper() const { return id_; }
  Status keep();
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
  Child keeper_;      // not of a storage that was taken over
  UniqueFd control_;  // likewise
  UniqueFd pidfd_;    // only of a storage that was taken over
  UniqueFd userns_;
  UniqueFd mntns_;
};

}  // namespace cofferdam::workspace
