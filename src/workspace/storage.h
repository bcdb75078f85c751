// An attempt's storage: one user and mount namespace, held by a keeper process, with three bounded tmpfs in
// it: the work tree (bytes and inodes as the invocation says), the git metadata, and the way out. Boxes are
// nested namespaces in it and have no right over its mounts.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/fd.h"
#include "base/process.h"
#include "base/result.h"
#include "contract/profile.h"

namespace cofferdam::workspace {

struct StorageOptions {
  std::string init;               // path of cofferdam-init
  std::optional<UserIds> run_as;  // when we are root
  std::uint64_t work_bytes = 0;
  std::uint64_t work_inodes = 0;
  std::uint64_t base_bytes = 0;  // size of the base pack: the metadata's bound follows from it
};

// Owns the keeper: the storage is given back when this is destroyed.
class Storage {
 public:
  static Result<Storage> create(const StorageOptions& options);
  contract::StorageRef ref() const { return {userns_.get(), mntns_.get()}; }
  // Ends the keeper and waits for it; every box of the storage has to be gone.
  Status release();
  // What is left when that fails, for the record.
  std::string describe() const;

 private:
  Storage(Child keeper, UniqueFd control, UniqueFd userns, UniqueFd mntns)
      : keeper_(std::move(keeper)),
        control_(std::move(control)),
        userns_(std::move(userns)),
        mntns_(std::move(mntns)) {}
  Child keeper_;
  UniqueFd control_;
  UniqueFd userns_;
  UniqueFd mntns_;
};

}  // namespace cofferdam::workspace
