#include "workspace/host_mount.h"

#include <fcntl.h>
#include <sys/mount.h>

#include <cerrno>

namespace cofferdam::workspace {

Result<UniqueFd> detached_mount(const std::string& folder, bool read_only) {
  UniqueFd tree(
      ::open_tree(AT_FDCWD, folder.c_str(), OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_SYMLINK_NOFOLLOW));
  if (!tree.valid()) return sys_error("cannot make a mount of " + folder, errno);
  mount_attr attributes{};
  attributes.attr_set = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | (read_only ? MOUNT_ATTR_RDONLY : 0U);
  if (::mount_setattr(tree.get(), "", AT_EMPTY_PATH, &attributes, sizeof attributes) != 0) {
    return sys_error("cannot restrict a mount of " + folder, errno);
  }
  return tree;
}

Result<UniqueFd> detached_ext4(const std::string& device) {
  const UniqueFd context(::fsopen("ext4", FSOPEN_CLOEXEC));
  if (!context.valid()) return sys_error("cannot mount ext4", errno);
  if (::fsconfig(context.get(), FSCONFIG_SET_STRING, "source", device.c_str(), 0) != 0 ||
      // Nobody needs the rest of the inode tables zeroed in the background.
      ::fsconfig(context.get(), FSCONFIG_SET_FLAG, "noinit_itable", nullptr, 0) != 0 ||
      ::fsconfig(context.get(), FSCONFIG_CMD_CREATE, nullptr, nullptr, 0) != 0) {
    return sys_error("cannot mount " + device, errno);
  }
  UniqueFd mount(::fsmount(context.get(), FSMOUNT_CLOEXEC, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV));
  if (!mount.valid()) return sys_error("cannot mount " + device, errno);
  return mount;
}

}  // namespace cofferdam::workspace
