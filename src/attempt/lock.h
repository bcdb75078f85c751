// The lock on an attempt's folder: held by the one process that works on the attempt, its supervisor or a
// recovery. The kernel gives it back when that process ends, however it ends (open file description locks,
// fcntl_locking(2)), so a lock that can be
// taken proves that nobody works on the attempt any more.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "base/fd.h"
#include "base/result.h"

namespace cofferdam::attempt {

std::string folder_of(const std::string& state_dir, const std::string& attempt_id);

class AttemptLock {
 public:
  // Makes the folder if need be. None when another process holds the lock.
  static Result<std::optional<AttemptLock>> try_take(const std::string& state_dir,
                                                     const std::string& attempt_id);
  // Looks only; nothing is made.
  static Result<bool> is_held(const std::string& state_dir, const std::string& attempt_id);
  AttemptLock(AttemptLock&& other) noexcept
      : fd_(std::move(other.fd_)), folder_(std::exchange(other.folder_, {})) {}
  AttemptLock& operator=(AttemptLock&&) = delete;
  // Removes the lock file while it is held; the folder too, if nothing else is in it.
  ~AttemptLock();
  const std::string& folder() const { return folder_; }

 private:
  AttemptLock(UniqueFd fd, std::string folder) : fd_(std::move(fd)), folder_(std::move(folder)) {}
  UniqueFd fd_;
  std::string folder_;
};

}  // namespace cofferdam::attempt
