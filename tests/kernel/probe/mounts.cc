// Mounts and namespaces.
#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>

#include "acts.h"

namespace box_probe {
namespace {

int nothing(const Args&) {
  return 0;
}

// Something to act on when we are root of our own namespaces; in a box it fails like everything else here.
void prepare_tmpfs(const std::string& target, unsigned long flags) {
  (void)::mount("tmpfs", target.c_str(), "tmpfs", flags, "size=1m,nr_inodes=16");
}

std::uint64_t size_of(const std::string& path) {
  struct statvfs info {};
  return ::statvfs(path.c_str(), &info) == 0 ? info.f_blocks * info.f_frsize : 0;
}

int mount_tmpfs(const Args& args) {
  return outcome(::mount("tmpfs", argument(args, 0).c_str(), "tmpfs", 0, "size=1m"));
}

int mount_bind(const Args& args) {
  return outcome(::mount(argument(args, 0).c_str(), argument(args, 1).c_str(), nullptr, MS_BIND, nullptr));
}

int unmount(const Args& args) {
  prepare_tmpfs(argument(args, 0), 0);
  return outcome(::umount2(argument(args, 0).c_str(), MNT_DETACH));
}

int remount_bigger(const Args& args) {
  const std::string target = argument(args, 0);
  prepare_tmpfs(target, 0);
  const std::uint64_t before = size_of(target);
  long result = ::mount(nullptr, target.c_str(), nullptr, MS_REMOUNT | MS_NOSUID | MS_NODEV, "size=64g");
  if (result != 0) return errno;
  return size_of(target) > before ? 0 : ENODATA;
}

int remount_writable(const Args& args) {
  prepare_tmpfs(argument(args, 0), MS_RDONLY);
  return outcome(::mount(nullptr, argument(args, 0).c_str(), nullptr, MS_REMOUNT | MS_BIND, nullptr));
}

int change_root(const Args& args) {
  return outcome(::chroot(argument(args, 0).c_str()));
}

int fs_open(const Args&) {
  return outcome(::fsopen("tmpfs", FSOPEN_CLOEXEC));
}

int clone_tree(const Args& args) {
  return outcome(::open_tree(AT_FDCWD, argument(args, 0).c_str(), OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC));
}

int mount_attributes(const Args& args) {
  prepare_tmpfs(argument(args, 0), 0);
  mount_attr attributes{};
  attributes.attr_set = MOUNT_ATTR_NODEV;
  return outcome(::mount_setattr(AT_FDCWD, argument(args, 0).c_str(), 0, &attributes, sizeof attributes));
}

int unshare_namespace(const Args& args) {
  return outcome(::unshare(static_cast<int>(number(args, 0))));
}

int finish_child(long pid) {
  if (pid < 0) return errno;
  if (pid == 0) ::_exit(0);
  int status = 0;
  return outcome(::waitpid(static_cast<pid_t>(pid), &status, 0));
}

int clone_namespace(const Args& args) {
  const long flags = number(args, 0) | SIGCHLD;
  return finish_child(::syscall(SYS_clone, flags, nullptr, nullptr, nullptr, nullptr));
}

int clone3_namespace(const Args& args) {
  clone_args arguments{};
  arguments.flags = static_cast<std::uint64_t>(number(args, 0));
  arguments.exit_signal = SIGCHLD;
  return finish_child(::syscall(SYS_clone3, &arguments, sizeof arguments));
}

int set_namespace(const Args& args) {
  const int fd = ::open(argument(args, 0).c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return errno;
  return outcome(::setns(fd, static_cast<int>(number(args, 1))));
}

}  // namespace

std::vector<Act> mount_acts() {
  return {{"nothing", nothing},
          {"mount-tmpfs", mount_tmpfs},
          {"mount-bind", mount_bind},
          {"umount", unmount},
          {"remount-bigger", remount_bigger},
          {"remount-writable", remount_writable},
          {"chroot", change_root},
          {"fsopen", fs_open},
          {"open-tree", clone_tree},
          {"mount-setattr", mount_attributes},
          {"unshare", unshare_namespace},
          {"clone", clone_namespace},
          {"clone3", clone3_namespace},
          {"setns", set_namespace}};
}

}  // namespace box_probe
