#include "attempt/lock.h"

#include <fcntl.h>
#include <unistd.h>

#include "base/failpoint.h"
#include "base/file.h"

namespace cofferdam::attempt {
std::string folder_of(const std::string& state_dir, const std::string& attempt_id) {
  return state_dir + "/attempts/" + attempt_id;
}

Result<std::optional<AttemptLock>> AttemptLock::try_take(const std::string& state_dir,
                                                         const std::string& attempt_id) {
  const std::string folder = folder_of(state_dir, attempt_id);
  const std::string path = folder + "/lock";
  // Again when whoever held it has removed file or folder between our opening and locking it.
  while (true) {
    TRY_VOID(make_dirs(folder));
    auto opened = open_file(path, O_RDWR | O_CREAT | O_NOFOLLOW);
    if (!opened && !exists(folder)) continue;
    TRY(UniqueFd fd, std::move(opened));
    TRY(const bool taken, try_lock(fd.get()));
    if (!taken) return std::optional<AttemptLock>{};
    if (!is_still_at(fd.get(), path)) continue;
    failpoint("lock-taken");
    return std::optional<AttemptLock>(AttemptLock(std::move(fd), folder));
  }
}

Result<bool> AttemptLock::is_held(const std::string& state_dir, const std::string& attempt_id) {
  const std::string path = folder_of(state_dir, attempt_id) + "/lock";
  auto fd = open_file(path, O_RDWR | O_NOFOLLOW);
  if (!fd) return !exists(path) ? Result<bool>(false) : Result<bool>(std::move(fd).error());
  return is_locked(fd->get());
}

AttemptLock::~AttemptLock() {
  if (!fd_.valid()) return;
  ::unlink((folder_ + "/lock").c_str());
  ::rmdir(folder_.c_str());
}

}  // namespace cofferdam::attempt
