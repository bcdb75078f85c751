#include "cli/attempt_folder.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "base/file.h"
#include "base/text.h"

namespace cofferdam::cli {
namespace {

constexpr const char* kGone = ".gone-";  // no attempt id starts so

Error not_ours(const std::string& path, const char* why) {
  return make_error(Code::denied, fmt::format("{} {}: it is left alone", path, why),
                    "see what it is, and remove it by hand");
}

// An own folder below `parent`; an invalid descriptor when there is nothing of that name.
Result<UniqueFd> open_own(int parent, const std::string& name, const std::string& shown) {
  UniqueFd fd(::openat(parent, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!fd.valid()) {
    if (errno == ENOENT) return UniqueFd();
    if (errno == ENOTDIR || errno == ELOOP) return not_ours(shown, "is not a folder");
    return sys_error(shown, errno);
  }
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0) return sys_error(shown, errno);
  if (info.st_uid != ::geteuid()) return not_ours(shown, "belongs to somebody else");
  return fd;
}

Error busy(const std::string& id) {
  return make_error(Code::conflict, fmt::format("another process works on attempt \"{}\"", id),
                    "wait for it to end");
}

// The lock that a supervisor and a recovery hold while they work on an attempt; none was made, none is held.
Result<UniqueFd> take_lock(int folder, const std::string& id) {
  UniqueFd lock(::openat(folder, "lock", O_RDWR | O_NOFOLLOW | O_CLOEXEC));
  if (!lock.valid()) {
    if (errno == ENOENT) return UniqueFd();
    return sys_error("the lock of attempt " + id, errno);
  }
  TRY(const bool taken, try_lock(lock.get()));
  if (!taken) return busy(id);
  return lock;
}

std::string path_of(const UniqueFd& folder) {
  return "/proc/self/fd/" + std::to_string(folder.get());
}

}  // namespace

Result<std::optional<AttemptFolder>> AttemptFolder::open(const std::string& state_dir,
                                                         const std::string& id) {
  AttemptFolder out;
  out.id_ = id;
  const std::string attempts = state_dir + "/attempts";
  TRY(out.parent_, open_own(AT_FDCWD, attempts, attempts));
  if (!out.parent_.valid()) return std::optional<AttemptFolder>{};
  const std::string shown = attempts + "/" + id;
  TRY(out.folder_, open_own(out.parent_.get(), id, shown));
  if (!out.folder_.valid()) return std::optional<AttemptFolder>{};
  TRY(out.lock_, take_lock(out.folder_.get(), id));
  // Against two that remove the same folder.
  if (::flock(out.folder_.get(), LOCK_EX | LOCK_NB) != 0) return busy(id);
  TRY(out.bytes_, tree_bytes(path_of(out.parent_) + "/" + id));
  out.has_store_ = exists(path_of(out.folder_) + "/store.git");
  return std::optional<AttemptFolder>(std::move(out));
}

Status AttemptFolder::remove() {
  const std::string gone = kGone + random_hex(8);
  if (::renameat(parent_.get(), id_.c_str(), parent_.get(), gone.c_str()) != 0) {
    return sys_error("cannot remove what is kept of attempt " + id_, errno);
  }
  return remove_tree(path_of(parent_) + "/" + gone);
}

Status remove_folder_leftovers(const std::string& state_dir) {
  const std::string attempts = state_dir + "/attempts";
  TRY(const UniqueFd parent, open_own(AT_FDCWD, attempts, attempts));
  if (!parent.valid()) return {};
  TRY(const std::vector<std::string> names, list_dir(path_of(parent)));
  for (const std::string& name : names) {
    if (!starts_with(name, kGone)) continue;
    std::string shown = attempts;
    shown.append("/").append(name);
    auto folder = open_own(parent.get(), name, shown);
    // Whoever is removing it holds its lock.
    if (!folder || !folder->valid() || ::flock(folder->get(), LOCK_EX | LOCK_NB) != 0) continue;
    TRY_VOID(remove_tree(path_of(parent).append("/").append(name)));
  }
  return {};
}

}  // namespace cofferdam::cli
