#include "attempt/host_setup.h"

#include <unistd.h>

#include "sandbox/native/cgroup.h"
#include "workspace/image.h"
#include "workspace/slots.h"

namespace cofferdam::attempt {
namespace {

Status need_root() {
  if (::geteuid() == 0) return {};
  return make_error(Code::denied,
                    "host-setup mounts disks and hands control groups over, which only root may",
                    "sudo cofferdam host-setup ...");
}

}  // namespace

Result<unsigned> set_up_host(const HostSetup& setup) {
  TRY_VOID(need_root());
  if (!workspace::can_make_images()) {
    return make_error(Code::unsupported_host, "this host has no loop devices or no mke2fs",
                      "install e2fsprogs and load the kernel's loop module");
  }
  if (setup.bytes < workspace::kLeastImageBytes || setup.inodes < workspace::kLeastImageInodes) {
    return make_error(Code::usage, "a slot needs at least 2 MiB and 64 inodes", "raise --bytes and --inodes");
  }
  return workspace::set_up_slots(setup);
}

Status hand_over_groups(const std::string& cgroup, const UserIds& owner) {
  TRY_VOID(need_root());
  return sandbox::make_user_cgroups(cgroup, owner);
}

Result<unsigned> remove_host_setup(const std::string& slots_dir, const std::string& cgroup, uid_t user) {
  TRY_VOID(need_root());
  TRY_VOID(sandbox::remove_user_cgroups(cgroup, user));
  return workspace::remove_slots(slots_dir, user);
}

}  // namespace cofferdam::attempt
