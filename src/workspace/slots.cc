#include "workspace/slots.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "base/file.h"
#include "workspace/image.h"
#include "workspace/room.h"

namespace cofferdam::workspace {
namespace {

constexpr unsigned kMaxSlots = 1000;

std::string folder_of_user(const std::string& slots_dir, uid_t user) {
  return fmt::format("{}/{}", slots_dir, user);
}

// A mount of its own, and no folder that waits for one.
bool is_mounted(const std::string& folder) {
  struct stat inside {};
  struct stat around {};
  const std::string parent = folder.substr(0, folder.rfind('/'));
  return ::lstat(folder.c_str(), &inside) == 0 && ::lstat(parent.c_str(), &around) == 0 &&
         S_ISDIR(inside.st_mode) && inside.st_dev != around.st_dev;
}

bool is_within(const std::string& folder, std::uint64_t bytes, std::uint64_t inodes) {
  struct statvfs info {};
  return ::statvfs(folder.c_str(), &info) == 0 && info.f_blocks * info.f_frsize <= bytes &&
         info.f_files <= inodes;
}

// The slots that a user has, mounted or not.
std::vector<std::string> slots_of(const std::string& slots_dir, uid_t user) {
  std::vector<std::string> found;
  for (unsigned number = 1; number <= kMaxSlots; ++number) {
    std::string folder = fmt::format("{}/{}", folder_of_user(slots_dir, user), number);
    if (!is_directory(folder)) break;
    found.push_back(std::move(folder));
  }
  return found;
}

Result<UniqueFd> open_lock(const std::string& folder) {
  return open_file(folder + ".lock", O_RDWR | O_NOFOLLOW);
}

Status mount_slot(const std::string& folder, const UserIds& owner) {
  TRY(const UniqueFd image, open_file(folder + ".img", O_RDWR | O_NOFOLLOW));
  TRY(const UniqueFd mount, mount_image(image.get()));
  if (::move_mount(mount.get(), "", AT_FDCWD, folder.c_str(), MOVE_MOUNT_F_EMPTY_PATH) != 0) {
    return sys_error("cannot mount " + folder, errno);
  }
  // Root's own, which a box of the user's could not remove.
  (void)::rmdir((folder + "/lost+found").c_str());
  if (::chown(folder.c_str(), owner.uid, owner.gid) != 0 || ::chmod(folder.c_str(), 0700) != 0) {
    return sys_error("cannot give away " + folder, errno);
  }
  return {};
}

// Root mounts and gives away by name there: nobody else may be able to put something else under a name on the
// way.
Status check_roots_own(const std::string& folder) {
  for (std::string at = folder; !at.empty();) {
    struct stat info {};
    const bool there = ::lstat(at.c_str(), &info) == 0;
    const bool sticky = (info.st_mode & S_ISVTX) != 0;  // only owners remove or rename there
    if (there && (!S_ISDIR(info.st_mode) || info.st_uid != 0 || ((info.st_mode & 022U) != 0 && !sticky))) {
      return make_error(Code::denied, at + " is not a folder of root's that nobody else can write",
                        "name another one with --dir");
    }
    at.resize(at.rfind('/'));
  }
  return {};
}

// Everything of a slot but its mount. The image comes last, by a rename: half a slot is made again.
Status make_slot(const std::string& folder, const SlotSetup& setup) {
  TRY_VOID(check_disk(setup.slots_dir, setup.bytes));
  TRY_VOID(make_dirs(folder, 0755));
  TRY(const UniqueFd lock, open_file(folder + ".lock", O_RDWR | O_CREAT | O_NOFOLLOW));
  if (::fchown(lock.get(), setup.owner.uid, setup.owner.gid) != 0) {
    return sys_error("cannot give away " + folder + ".lock", errno);
  }
  const std::string fresh = folder + ".new";
  ::unlink(fresh.c_str());
  TRY(const UniqueFd image, open_file(fresh, O_RDWR | O_CREAT | O_EXCL));
  TRY_VOID(fill_image(image.get(), setup.bytes, setup.inodes, setup.owner));
  if (::rename(fresh.c_str(), (folder + ".img").c_str()) != 0)
    return sys_error("cannot make " + folder, errno);
  return {};
}

}  // namespace

Result<Slot> take_slot(const std::string& slots_dir, uid_t user, std::uint64_t bytes, std::uint64_t inodes) {
  unsigned taken = 0;
  for (const std::string& folder : slots_of(slots_dir, user)) {
    if (!is_mounted(folder) || !is_within(folder, bytes, inodes)) continue;
    TRY(UniqueFd lock, open_lock(folder));
    if (::flock(lock.get(), LOCK_EX | LOCK_NB) == 0) return Slot{folder, std::move(lock)};
    if (errno != EWOULDBLOCK) return sys_error("cannot lock " + folder, errno);
    ++taken;
  }
  if (taken == 0) return Slot{};
  return make_error(Code::exhausted, fmt::format("no capacity: all {} slots of this user are in use", taken),
                    "wait for an attempt to end, let root make more with `cofferdam host-setup`, or set "
                    "workspace.storage to \"memory\"");
}

Result<SlotCount> count_slots(const std::string& slots_dir, uid_t user, std::uint64_t bytes,
                              std::uint64_t inodes) {
  SlotCount count;
  for (const std::string& folder : slots_of(slots_dir, user)) {
    ++count.all;
    if (!is_mounted(folder) || !is_within(folder, bytes, inodes)) continue;
    struct statvfs info {};
    if (::statvfs(folder.c_str(), &info) != 0) return sys_error(folder, errno);
    const std::uint64_t size = info.f_blocks * info.f_frsize;
    count.bytes = count.fitting == 0 ? size : std::min(count.bytes, size);
    ++count.fitting;
    // Shared, and given back at once, so that two who look do not see one another.
    TRY(const UniqueFd lock, open_lock(folder));
    if (::flock(lock.get(), LOCK_SH | LOCK_NB) == 0) ++count.free;
  }
  return count;
}

Result<unsigned> set_up_slots(const SlotSetup& setup) {
  if (setup.count > kMaxSlots) {
    return make_error(Code::usage, fmt::format("more than {} slots of one user", kMaxSlots));
  }
  TRY_VOID(check_roots_own(setup.slots_dir));
  TRY_VOID(make_dirs(folder_of_user(setup.slots_dir, setup.owner.uid), 0755));
  unsigned made = 0;
  for (unsigned number = 1; number <= setup.count; ++number) {
    const std::string folder = fmt::format("{}/{}", folder_of_user(setup.slots_dir, setup.owner.uid), number);
    if (!exists(folder + ".img")) {
      TRY_VOID(make_slot(folder, setup));
      ++made;
    }
    if (!is_mounted(folder)) TRY_VOID(mount_slot(folder, setup.owner));
  }
  return made;
}

Result<unsigned> remove_slots(const std::string& slots_dir, uid_t user) {
  TRY_VOID(check_roots_own(slots_dir));
  const std::vector<std::string> folders = slots_of(slots_dir, user);
  std::vector<UniqueFd> locks;
  for (const std::string& folder : folders) {
    TRY(UniqueFd lock, open_lock(folder));
    if (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
      return make_error(Code::conflict, folder + " is in use by an attempt", "wait for it, or cancel it");
    }
    locks.push_back(std::move(lock));
  }
  for (const std::string& folder : folders) {
    if (is_mounted(folder) && ::umount2(folder.c_str(), UMOUNT_NOFOLLOW) != 0) {
      return sys_error("cannot unmount " + folder, errno);
    }
    for (const char* suffix : {".img", ".lock", ".new"}) ::unlink((folder + suffix).c_str());
    if (::rmdir(folder.c_str()) != 0) return sys_error("cannot remove " + folder, errno);
  }
  (void)::rmdir(folder_of_user(slots_dir, user).c_str());
  return static_cast<unsigned>(folders.size());
}

}  // namespace cofferdam::workspace
