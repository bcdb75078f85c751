#include "base/in_use.h"

#include <fcntl.h>
#include <sys/file.h>
#include <time.h>

#include <cerrno>

namespace cofferdam {
namespace {

// Each further try means that an eviction came between two system calls.
constexpr int kMaxTries = 100;

}  // namespace

std::int64_t modified_ns(const struct stat& info) {
  return static_cast<std::int64_t>(info.st_mtim.tv_sec) * 1'000'000'000 + info.st_mtim.tv_nsec;
}

void mark_use(int lock) {
  struct timespec times[2]{};
  if (::clock_gettime(CLOCK_REALTIME, &times[1]) != 0) return;
  times[0].tv_nsec = UTIME_OMIT;
  (void)::futimens(lock, times);  // a wrong age only makes a worse choice
}

std::int64_t last_use_ns(const std::string& folder) {
  struct stat info {};
  if (::lstat((folder + kUseFile).c_str(), &info) != 0 && ::lstat(folder.c_str(), &info) != 0) return 0;
  return modified_ns(info);
}

Status lock_waiting(int fd, int kind, const std::string& shown) {
  while (::flock(fd, kind) != 0) {
    if (errno != EINTR) return sys_error("cannot lock " + shown, errno);
  }
  return {};
}

std::optional<UniqueFd> lock_unused(const std::string& folder) {
  const std::string path = folder + kUseFile;
  auto lock = open_file(path, O_RDWR | O_CREAT | O_NOFOLLOW);
  if (!lock || ::flock(lock->get(), LOCK_EX | LOCK_NB) != 0 || !is_still_at(lock->get(), path)) {
    return std::nullopt;
  }
  return *std::move(lock);
}

bool is_own_folder(const std::string& path) {
  struct stat info {};
  return ::lstat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

Result<bool> remove_leftover(const std::string& folder) {
  auto lock = open_file(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  if (!lock || ::flock(lock->get(), LOCK_EX | LOCK_NB) != 0 || !is_still_at(lock->get(), folder))
    return false;
  TRY_VOID(remove_tree(folder));
  return true;
}

Result<Nursery> Nursery::create(const std::string& parent) {
  for (int tries = 0; tries < kMaxTries; ++tries) {
    TRY(TempDir folder, TempDir::create(parent, kNewPrefix));
    auto lock = open_file(folder.path(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    if (!lock) continue;
    TRY_VOID(lock_waiting(lock->get(), LOCK_EX, folder.path()));
    // An eviction that came before the lock took it for a leftover.
    if (is_still_at(lock->get(), folder.path())) return Nursery(*std::move(lock), std::move(folder));
  }
  return make_error(Code::internal, "new folders in " + parent + " do not last");
}

}  // namespace cofferdam
