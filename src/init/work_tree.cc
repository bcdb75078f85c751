#include "init/work_tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <initializer_list>

#include "init/mounts.h"
#include "init/sys.h"

namespace cofferdam::init {
namespace {

// Relative names, as in mounts.cc: the mount table of a box shows them as they are given. `userxattr` is what
// an unprivileged mount needs to mark removed folders (Documentation/filesystems/overlayfs.rst, Linux 5.11);
// without xino a file keeps the inode number that it has below, which is the one in the index.
constexpr const char* kOptions = "lowerdir=lower,upperdir=upper,workdir=scratch,userxattr,xino=off";
// The storage does not survive a crash of the host in any case, so nothing has to wait for its disk.
constexpr const char* kVolatile = "lowerdir=lower,upperdir=upper,workdir=scratch,userxattr,xino=off,volatile";

int remove_entry(const char* path, const struct stat*, int, FTW*) {
  return ::remove(path);
}

// A tree of our own making: no agent has run yet.
void remove_own_tree(const char* path) {
  constexpr int kOpenFolders = 16;
  (void)::nftw(path, remove_entry, kOpenFolders, FTW_DEPTH | FTW_PHYS);
}

bool is_empty(const char* path) {
  DIR* dir = ::opendir(path);
  if (dir == nullptr) return false;
  bool empty = true;
  while (const dirent* entry = ::readdir(dir)) {
    if (::strcmp(entry->d_name, ".") != 0 && ::strcmp(entry->d_name, "..") != 0) empty = false;
  }
  ::closedir(dir);
  return empty;
}

std::string failed(const char* step) {
  return std::string(step) + ": " + std::strerror(errno);
}

bool make_dirs(std::initializer_list<const char*> paths) {
  for (const char* path : paths) {
    if (::mkdir(path, 0755) != 0 && errno != EEXIST) return false;
  }
  return true;
}

// What fails on a tmpfs of Linux before 6.6, which has no user attributes: a folder from below cannot be
// removed (EIO). In the working directory.
std::string use_probe_mount() {
  if (::unlink("merged/folder/file") != 0) return failed("removing a file of a lower folder");
  if (::rmdir("merged/folder") != 0) return failed("removing a lower folder");
  if (::mkdir("merged/folder", 0755) != 0) return failed("making a removed folder again");
  if (!is_empty("merged/folder")) return "a folder that was removed and made again is not empty";
  const int fd = ::open("merged/folder/file", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (fd < 0) return failed("making a removed file again");
  ::close(fd);
  return {};
}

std::string probe_here() {
  if (!make_dirs({"lower", "lower/folder", "upper", "scratch", "merged"})) return failed("making the probe");
  const int fd = ::open("lower/folder/file", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (fd < 0) return failed("making the probe");
  ::close(fd);
  if (::mount("overlay", "merged", "overlay", MS_NOSUID | MS_NODEV, kOptions) != 0)
    return failed("mounting an overlay");
  std::string problem = use_probe_mount();
  ::umount2("merged", MNT_DETACH);
  return problem;
}

// With "storage/probe" as the working directory, so that the names of the probe are those of the real one.
std::string probe_storage(const std::string& storage) {
  const std::string place = storage + "/probe";
  if (::mkdir(place.c_str(), 0700) != 0) return failed("making the probe");
  std::string problem = ::chdir(place.c_str()) == 0 ? probe_here() : failed("entering the probe");
  check(::chdir(storage.c_str()) == 0, "chdir to the storage");
  remove_own_tree(place.c_str());
  return problem;
}

std::string mount_here(const plan::Op& op, const std::string& storage, const std::string& target) {
  if (!make_dirs({"upper", "scratch"})) return failed("making the upper layer");
  bind_source(op, storage + "/lower");
  std::string problem;
  if (::mount("overlay", target.c_str(), "overlay", MS_NOSUID | MS_NODEV, kVolatile) != 0) {
    problem = failed("mounting the work tree");
  }
  check(::umount2("lower", MNT_DETACH) == 0 && ::rmdir("lower") == 0, "umount a lower layer");
  return problem;
}

}  // namespace

std::string mount_work_tree(const plan::Op& op, const std::string& target) {
  const std::string storage = target.substr(0, target.rfind('/'));
  const int here = ::open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
  check(here >= 0, "open the working directory");
  std::string problem = probe_storage(storage);
  if (problem.empty()) problem = mount_here(op, storage, target);
  if (!problem.empty()) {
    remove_own_tree("upper");
    remove_own_tree("scratch");
  }
  check(::fchdir(here) == 0, "chdir");
  ::close(here);
  return problem;
}

}  // namespace cofferdam::init
