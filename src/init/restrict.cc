#include "init/restrict.h"

#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "init/sys.h"

namespace cofferdam::init {

void enter_user_namespace(int extra_flags, unsigned inside_uid, unsigned inside_gid) {
  const unsigned uid = ::geteuid();
  const unsigned gid = ::getegid();
  check(::unshare(CLONE_NEWUSER | extra_flags) == 0, "create a user namespace");
  check(write_file("/proc/self/setgroups", "deny") || errno == ENOENT, "deny setgroups");
  check(write_file("/proc/self/uid_map", number(inside_uid) + " " + number(uid) + " 1\n"), "write uid_map");
  check(write_file("/proc/self/gid_map", number(inside_gid) + " " + number(gid) + " 1\n"), "write gid_map");
}

void forbid_user_namespaces() {
  check(write_file("/proc/sys/user/max_user_namespaces", "0"), "forbid further user namespaces");
}

void drop_capabilities() {
  check(::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) == 0, "clear ambient capabilities");
  for (unsigned long cap = 0; cap < 64; ++cap) {
    if (::prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) != 0) {
      check(errno == EINVAL, "drop a bounding capability");  // past the last one that this kernel knows
      break;
    }
  }
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[2] = {};
  check(::syscall(SYS_capset, &header, data) == 0, "drop capabilities");
}

// capabilities(7): the ambient set is what a program without file capabilities gets, and it can only hold
// what is inheritable too.
void keep_capabilities() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[2] = {};
  check(::syscall(SYS_capget, &header, data) == 0, "read capabilities");
  for (__user_cap_data_struct& half : data) half.inheritable = half.permitted;
  check(::syscall(SYS_capset, &header, data) == 0, "make capabilities inheritable");
  for (unsigned long cap = 0; cap < 64; ++cap) {
    if (((data[cap / 32].permitted >> (cap % 32)) & 1U) == 0) continue;
    check(::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, cap, 0, 0) == 0, "raise a capability");
  }
}

void start_session(const plan::Plan& plan) {
  ::setsid();
  if (!has_layer(plan, plan::Layer::session)) ::ioctl(0, TIOCSCTTY, 0);
}

namespace {
void limit(int resource, rlim_t value) {
  rlimit now{};
  check(::getrlimit(static_cast<__rlimit_resource>(resource), &now) == 0, "getrlimit");
  if (now.rlim_max != RLIM_INFINITY && now.rlim_max < value) value = now.rlim_max;
  rlimit wanted{value, value};
  check(::setrlimit(static_cast<__rlimit_resource>(resource), &wanted) == 0, "setrlimit");
}
}  // namespace

void set_limits(const plan::Plan& plan) {
  limit(RLIMIT_CORE, 0);
  limit(RLIMIT_NOFILE, plan.open_files);
  limit(RLIMIT_MEMLOCK, 8U << 20U);
  limit(RLIMIT_MSGQUEUE, 1U << 20U);
  // Counted for this user in this user namespace (since Linux 5.14, ucounts), so neither other boxes nor the
  // caller's own processes are in it. Init itself is.
  if (plan.process_limit != 0) limit(RLIMIT_NPROC, plan.process_limit);
  if (plan.file_size_limit != 0) limit(RLIMIT_FSIZE, plan.file_size_limit);
}

void load_seccomp(const std::string& filter) {
  sock_fprog program{};
  program.len = static_cast<unsigned short>(filter.size() / sizeof(sock_filter));
  // The kernel only reads; the interface is not const.
  program.filter = reinterpret_cast<sock_filter*>(const_cast<char*>(filter.data()));  // NOLINT
  check(::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) == 0, "load the seccomp filter");
}

}  // namespace cofferdam::init
