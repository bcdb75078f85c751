#include "attempt/lock.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/failpoint.h"
#include "base/file.h"

namespace cofferdam::attempt {
namespace {

bool is_still(const UniqueFd& fd, const std::string& path) {
  struct stat held {};
  struct stat named {};
  return ::fstat(fd.get(), &held) == 0 && ::lstat(path.c_str(), &named) == 0 && held.st_dev == named.st_dev &&
         held.st_ino == named.st_ino;
}

struct flock whole_file() {
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  return lock;
}

}  // namespace

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
    struct flock whole = whole_file();
    if (::fcntl(fd.get(), F_OFD_SETLK, &whole) != 0) {
      if (errno == EINTR) continue;
      if (errno == EAGAIN || errno == EACCES) return std::optional<AttemptLock>{};
      return sys_error("cannot lock " + path, errno);
    }
    if (!is_still(fd, path)) continue;
    failpoint("lock-taken");
    return std::optional<AttemptLock>(AttemptLock(std::move(fd), folder));
  }
}

Result<bool> AttemptLock::is_held(const std::string& state_dir, const std::string& attempt_id) {
  const std::string path = folder_of(state_dir, attempt_id) + "/lock";
  auto fd = open_file(path, O_RDWR | O_NOFOLLOW);
  if (!fd) return !exists(path) ? Result<bool>(false) : Result<bool>(std::move(fd).error());
  struct flock whole = whole_file();
  if (::fcntl(fd->get(), F_OFD_GETLK, &whole) != 0) return sys_error("cannot look at " + path, errno);
  return whole.l_type != F_UNLCK;
}

AttemptLock::~AttemptLock() {
  if (!fd_.valid()) return;
  ::unlink((folder_ + "/lock").c_str());
  ::rmdir(folder_.c_str());
}

}  // namespace cofferdam::attempt
