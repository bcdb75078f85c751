// Mounts and namespaces. Where an act works it works in a mount namespace of its own, made from the box's, so
// that it changes nothing for the acts after it.
#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "probe/acts.h"

namespace cofferdam::probe {
namespace {

constexpr const char* kPlace = "/tmp/cofferdam-place";

void own_mounts() {
  (void)::unshare(CLONE_NEWNS);  // where that fails, so does what follows
  (void)::mkdir(kPlace, 0700);
}

Outcome mount_tmpfs(const Args&) {
  own_mounts();
  return outcome(::mount("tmpfs", kPlace, "tmpfs", MS_NOSUID | MS_NODEV, "size=64k"));
}

Outcome mount_bind(const Args& args) {
  own_mounts();
  return outcome(::mount(argument(args, 0).c_str(), kPlace, nullptr, MS_BIND, nullptr));
}

Outcome mount_cgroup(const Args&) {
  own_mounts();
  return outcome(
      ::mount("cgroup2", kPlace, "cgroup2", MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC, nullptr));
}

Outcome mount_proc(const Args&) {
  own_mounts();
  return outcome(::mount("proc", kPlace, "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, nullptr));
}

Outcome unmount(const Args& args) {
  own_mounts();
  return outcome(::umount2(argument(args, 0).c_str(), MNT_DETACH));
}

// PATH: the same flags without "read-only"; nothing is written.
Outcome remount_writable(const Args& args) {
  own_mounts();
  const std::string path = argument(args, 0);
  struct statvfs info {};
  if (::statvfs(path.c_str(), &info) != 0 || (info.f_flag & ST_RDONLY) == 0)
    return failed("it is no read-only mount");
  const unsigned long flags = MS_REMOUNT | MS_BIND | MS_NOSUID | MS_NODEV | MS_NOEXEC;
  if (::mount(nullptr, path.c_str(), nullptr, flags, nullptr) != 0) return denied_by(errno);
  if (::statvfs(path.c_str(), &info) != 0) return failed("statvfs");
  return allowed_if((info.f_flag & ST_RDONLY) == 0, "still read-only");
}

// PATH SIZE: of a tmpfs of the box's.
Outcome remount_bigger(const Args& args) {
  own_mounts();
  return outcome(::mount(nullptr, argument(args, 0).c_str(), nullptr, MS_REMOUNT | MS_NOSUID | MS_NODEV,
                         ("size=" + argument(args, 1)).c_str()));
}

Outcome change_root(const Args& args) {
  return outcome(::chroot(argument(args, 0).c_str()));
}

Outcome fs_open(const Args&) {
  return outcome(::fsopen("tmpfs", FSOPEN_CLOEXEC));
}

Outcome clone_tree(const Args& args) {
  return outcome(::open_tree(AT_FDCWD, argument(args, 0).c_str(), OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC));
}

Outcome attributes(const Args& args) {
  own_mounts();
  mount_attr attr{};
  attr.attr_set = MOUNT_ATTR_NODEV;
  return outcome(::mount_setattr(AT_FDCWD, argument(args, 0).c_str(), 0, &attr, sizeof attr));
}

Outcome unshare_namespace(const Args& args) {
  return outcome(::unshare(static_cast<int>(number(args, 0))));
}

Outcome finish(long pid) {
  if (pid < 0) return denied_by(errno);
  if (pid == 0) ::_exit(0);
  ::waitpid(static_cast<pid_t>(pid), nullptr, 0);
  return outcome(0);
}

Outcome clone_namespace(const Args& args) {
  return finish(::syscall(SYS_clone, number(args, 0) | SIGCHLD, nullptr, nullptr, nullptr, nullptr));
}

Outcome clone3_namespace(const Args& args) {
  clone_args arguments{};
  arguments.flags = static_cast<std::uint64_t>(number(args, 0));
  arguments.exit_signal = SIGCHLD;
  return finish(::syscall(SYS_clone3, &arguments, sizeof arguments));
}

// KIND: our own, entered once more.
Outcome enter_own(const Args& args) {
  const int fd = ::open(("/proc/self/ns/" + argument(args, 0)).c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return failed("open the namespace");
  return outcome(::setns(fd, 0));
}

// The box's own name, once more.
Outcome set_host_name(const Args&) {
  return outcome(::sethostname("cofferdam", 9));
}

}  // namespace

std::vector<Act> mount_acts() {
  return {{"mount-tmpfs", mount_tmpfs},
          {"mount-bind", mount_bind},
          {"mount-cgroup", mount_cgroup},
          {"mount-proc", mount_proc},
          {"umount", unmount},
          {"remount-writable", remount_writable},
          {"remount-bigger", remount_bigger},
          {"chroot", change_root},
          {"fsopen", fs_open},
          {"open-tree", clone_tree},
          {"mount-setattr", attributes},
          {"unshare", unshare_namespace},
          {"clone", clone_namespace},
          {"clone3", clone3_namespace},
          {"enter-own", enter_own},
          {"sethostname", set_host_name}};
}

}  // namespace cofferdam::probe
