#include "init/mounts.h"

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "init/sys.h"
#include "init/work_tree.h"

namespace cofferdam::init {
namespace {

using plan::Op;
using plan::OpCode;

constexpr unsigned kRecursive = 0x8000;  // AT_RECURSIVE, which <fcntl.h> of glibc 2.36 does not name

bool make_folder(const std::string& path, mode_t mode) {
  return ::mkdir(path.c_str(), mode) == 0 || errno == EEXIST;
}

// The mount point has to be of the source's kind.
void make_target(const std::string& target, bool folder) {
  if (folder) {
    check(make_folder(target, 0755), "mkdir");
    return;
  }
  int fd = ::open(target.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
  check(fd >= 0, "create a mount point");
  ::close(fd);
}

void set_attributes(int tree, unsigned long attributes, bool recursive) {
  mount_attr attr{};
  attr.attr_set = attributes;
  unsigned flags = AT_EMPTY_PATH | (recursive ? kRecursive : 0U);
  check(::mount_setattr(tree, "", flags, &attr, sizeof attr) == 0, "mount_setattr");
}

// open_tree(2), mount_setattr(2), move_mount(2): the copy is restricted before it is visible anywhere, and
// attributes that a less privileged namespace must keep are kept, because only new ones are added.
void bind(const Op& op, const std::string& target) {
  const bool given = op.n2 != 0;
  const int tree = given
                       ? static_cast<int>(op.n2)
                       : ::open_tree(AT_FDCWD, op.a.c_str(),
                                     OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_SYMLINK_NOFOLLOW | kRecursive);
  if (tree < 0) die_with(("open " + op.a).c_str(), errno);
  struct stat info {};
  check(::fstatat(tree, "", &info, AT_EMPTY_PATH) == 0, "stat a mount source");
  make_target(target, S_ISDIR(info.st_mode));
  unsigned long attributes = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;
  if ((op.n1 & plan::kReadOnly) != 0) attributes |= MOUNT_ATTR_RDONLY;
  if ((op.n1 & plan::kNoExec) != 0) attributes |= MOUNT_ATTR_NOEXEC;
  // The supervisor has restricted its own (workspace/host_mount.cc).
  if (!given) set_attributes(tree, attributes, true);
  check(::move_mount(tree, "", AT_FDCWD, target.c_str(), MOVE_MOUNT_F_EMPTY_PATH) == 0, "move_mount");
  ::close(tree);
}

// A device node is taken only if it is the very device that was asked for: a replaced /dev/null must not be
// carried into the box (CVE-2025-31133).
void device(const Op& op, const std::string& target) {
  int node = ::open(op.a.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC);
  if (node < 0) die_with(("open " + op.a).c_str(), errno);
  struct stat info {};
  check(::fstat(node, &info) == 0, "stat a device");
  if (!S_ISCHR(info.st_mode) || info.st_rdev != op.n1)
    die_with(("unexpected device " + op.a).c_str(), EINVAL);
  int tree = ::open_tree(node, "", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH);
  check(tree >= 0, "open_tree of a device");
  make_target(target, false);
  set_attributes(tree, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC, false);
  check(::move_mount(tree, "", AT_FDCWD, target.c_str(), MOVE_MOUNT_F_EMPTY_PATH) == 0,
        "move_mount a device");
  ::close(tree);
  ::close(node);
}

void tmpfs(const Op& op, const std::string& target) {
  check(make_folder(target, 0755), "mkdir for a tmpfs");
  char mode[8] = "0755";
  if ((op.n3 & 07777U) == 01777) std::strcpy(mode, "1777");
  if ((op.n3 & 07777U) == 0700) std::strcpy(mode, "0700");
  unsigned long no_exec = 0;
  if ((op.n3 & plan::kNoExec) != 0) no_exec = MS_NOEXEC;
  std::string options =
      "size=" + number(op.n1) + ",nr_inodes=" + number(op.n2) + ",mode=" + std::string(mode);
  check(::mount("tmpfs", target.c_str(), "tmpfs", MS_NOSUID | MS_NODEV | no_exec, options.c_str()) == 0,
        "mount a tmpfs");
}

// overlayfs resolves its layers relative to the working directory and shows them as they were given, so the
// mount table of the box reads "lowerdir=lower:none" and no host path. Two layers are the least it takes. The
// second has a file system of its own: a folder that had to be removed again could not be listed any more,
// and with it the whole root of the overlay (ENOENT from its readdir).
void overlay(const Op& op, const std::string& target) {
  std::string stage = target + ".layers";
  check(make_folder(stage, 0700), "mkdir for an overlay");
  check(make_folder(stage + "/lower", 0700) && make_folder(stage + "/none", 0700), "mkdir for an overlay");
  Op source = op;
  source.n1 = plan::kReadOnly;
  bind(source, stage + "/lower");
  check(::mount("tmpfs", (stage + "/none").c_str(), "tmpfs", MS_RDONLY | MS_NOSUID | MS_NODEV,
                "size=4k,nr_inodes=1,mode=0555") == 0,
        "mount an empty layer");
  check(make_folder(target, 0755), "mkdir for an overlay");
  int here = ::open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
  check(here >= 0 && ::chdir(stage.c_str()) == 0, "chdir for an overlay");
  check(::mount("overlay", target.c_str(), "overlay", MS_RDONLY | MS_NOSUID | MS_NODEV,
                "lowerdir=lower:none") == 0,
        "mount an overlay");
  check(::fchdir(here) == 0, "chdir");
  ::close(here);
  check(::umount2((stage + "/lower").c_str(), MNT_DETACH) == 0 &&
            ::umount2((stage + "/none").c_str(), MNT_DETACH) == 0,
        "umount an overlay layer");
  check(::rmdir((stage + "/lower").c_str()) == 0 && ::rmdir((stage + "/none").c_str()) == 0 &&
            ::rmdir(stage.c_str()) == 0,
        "remove an overlay stage");
}

// An index, which may be larger than what a plan carries.
void copy(const Op& op, const std::string& target) {
  const int from = static_cast<int>(op.n2);
  const int to = ::open(target.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  check(to >= 0, "create a copy");
  static char buffer[1U << 16U];
  while (true) {
    const ssize_t n = ::read(from, buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    check(n >= 0, "read what is copied");
    if (n == 0) break;
    check(::write(to, buffer, static_cast<std::size_t>(n)) == n, "write a copy");
  }
  ::close(to);
  ::close(from);
}

void make_file(const Op& op, const std::string& target) {
  int fd = ::open(target.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  check(fd >= 0, "create a file");
  check(::write(fd, op.a.data(), op.a.size()) == static_cast<ssize_t>(op.a.size()), "write a file");
  ::close(fd);
}

void apply(const Op& op, const std::string& target) {
  switch (op.code) {
    case OpCode::dir:
      check(make_folder(target, static_cast<mode_t>(op.n1)), "mkdir");
      return;
    case OpCode::file:
      return make_file(op, target);
    case OpCode::symlink:
      check(::symlink(op.a.c_str(), target.c_str()) == 0, "symlink");
      return;
    case OpCode::tmpfs:
      return tmpfs(op, target);
    case OpCode::bind:
      return bind(op, target);
    case OpCode::overlay:
      return overlay(op, target);
    case OpCode::proc:
      check(make_folder(target, 0555), "mkdir for proc");
      check(::mount("proc", target.c_str(), "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, nullptr) == 0,
            "mount proc");
      return;
    case OpCode::devpts:
      check(make_folder(target, 0755), "mkdir for devpts");
      check(::mount("devpts", target.c_str(), "devpts", MS_NOSUID | MS_NOEXEC,
                    "newinstance,ptmxmode=0666,mode=620") == 0,
            "mount devpts");
      return;
    case OpCode::device:
      return device(op, target);
    case OpCode::copy:
      return copy(op, target);
    case OpCode::work_tree:
      return;  // build_tree() has done it: its answer matters
  }
  die_with("unknown step in the plan", EINVAL);
}

}  // namespace

void bind_source(const Op& op, const std::string& target) {
  bind(op, target);
}

void make_private() {
  check(::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0, "make mounts private");
}

std::string build_tree(const std::vector<Op>& ops, const std::string& root) {
  std::string problem;
  for (const Op& op : ops) {
    if (op.code == OpCode::work_tree) problem = mount_work_tree(op, root + op.b);
    apply(op, root + op.b);
  }
  return problem;
}

void change_root(const char* new_root, const char* old_inside) {
  check(::chdir(new_root) == 0, "chdir to the new root");
  if (old_inside != nullptr) {
    check(::syscall(SYS_pivot_root, ".", old_inside) == 0, "pivot_root");
  } else {
    // pivot_root(2): "." as both stacks the old root on the new one, from where it is detached.
    check(::syscall(SYS_pivot_root, ".", ".") == 0, "pivot_root");
    check(::umount2(".", MNT_DETACH) == 0, "detach the old root");
  }
  check(::chdir("/") == 0, "chdir to /");
}

void set_read_only(const char* path, bool recursive) {
  mount_attr attr{};
  attr.attr_set = MOUNT_ATTR_RDONLY;
  check(::mount_setattr(AT_FDCWD, path, recursive ? kRecursive : 0U, &attr, sizeof attr) == 0,
        "make read-only");
}

void allow_set_id(const char* path) {
  mount_attr attr{};
  attr.attr_clr = MOUNT_ATTR_NOSUID;
  check(::mount_setattr(AT_FDCWD, path, 0, &attr, sizeof attr) == 0, "take nosuid away");
}

void mask(const std::vector<std::string>& paths) {
  for (const std::string& path : paths) {
    struct stat info {};
    if (::lstat(path.c_str(), &info) != 0) continue;
    if (S_ISDIR(info.st_mode)) {
      check(::mount("tmpfs", path.c_str(), "tmpfs", MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC,
                    "size=0,nr_inodes=1,mode=0555") == 0,
            "mask a folder");
    } else {
      check(::mount("/dev/null", path.c_str(), nullptr, MS_BIND, nullptr) == 0, "mask a file");
    }
  }
}

void protect(const std::vector<std::string>& paths) {
  for (const std::string& path : paths) {
    struct stat info {};
    if (::lstat(path.c_str(), &info) != 0) continue;
    check(::mount(path.c_str(), path.c_str(), nullptr, MS_BIND | MS_REC, nullptr) == 0, "bind for read-only");
    set_read_only(path.c_str(), true);
  }
}

}  // namespace cofferdam::init
