#include "sandbox/native/seccomp_filter.h"

#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <seccomp.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <memory>

#include "base/fd.h"
#include "base/io.h"

namespace cofferdam::sandbox {

// ENOSYS where programs have a fallback that they take only on ENOSYS (clone3, io_uring, the mount API).
const std::vector<SyscallRule>& syscall_rules() {
  static const std::vector<SyscallRule> rules = {
      {"unshare", EPERM, "new namespaces"},
      {"setns", EPERM, "other namespaces"},
      {"clone3", ENOSYS, "its flags are behind a pointer that a filter cannot read"},
      {"mount", EPERM, "mounts"},
      {"umount2", EPERM, "mounts"},
      {"pivot_root", EPERM, "mounts"},
      {"chroot", EPERM, "mounts"},
      {"fsopen", ENOSYS, "new mount API"},
      {"fsconfig", ENOSYS, "new mount API"},
      {"fsmount", ENOSYS, "new mount API"},
      {"fspick", ENOSYS, "new mount API"},
      {"open_tree", ENOSYS, "new mount API"},
      {"move_mount", ENOSYS, "new mount API"},
      {"mount_setattr", ENOSYS, "new mount API"},
      {"open_tree_attr", ENOSYS, "new mount API", 467},
      {"io_uring_setup", ENOSYS, "a second system-call interface that no filter sees"},
      {"io_uring_enter", ENOSYS, "a second system-call interface that no filter sees"},
      {"io_uring_register", ENOSYS, "a second system-call interface that no filter sees"},
      {"userfaultfd", ENOSYS, "makes kernel races winnable"},
      {"memfd_secret", ENOSYS, "memory that nobody can account for"},
      {"bpf", EPERM, "kernel programs"},
      {"perf_event_open", EPERM, "kernel surface"},
      {"keyctl", EPERM, "keyrings are not namespaced"},
      {"add_key", EPERM, "keyrings are not namespaced"},
      {"request_key", EPERM, "keyrings are not namespaced"},
      {"open_by_handle_at", EPERM, "files by number, past every path"},
      {"name_to_handle_at", EPERM, "files by number, past every path"},
      {"kexec_load", EPERM, "another kernel"},
      {"kexec_file_load", EPERM, "another kernel"},
      {"init_module", EPERM, "kernel modules"},
      {"finit_module", EPERM, "kernel modules"},
      {"delete_module", EPERM, "kernel modules"},
      {"acct", EPERM, "host accounting"},
      {"quotactl", EPERM, "host quotas"},
      {"quotactl_fd", EPERM, "host quotas", 443},
      {"swapon", EPERM, "host swap"},
      {"swapoff", EPERM, "host swap"},
      {"reboot", EPERM, "the host"},
      {"settimeofday", EPERM, "the host's clock"},
      {"clock_settime", EPERM, "the host's clock"},
      {"clock_adjtime", EPERM, "the host's clock"},
      {"adjtimex", EPERM, "the host's clock"},
      {"stime", EPERM, "the host's clock"},
      {"sethostname", EPERM, "the box's name"},
      {"setdomainname", EPERM, "the box's name"},
      {"iopl", EPERM, "hardware ports"},
      {"ioperm", EPERM, "hardware ports"},
      {"modify_ldt", EPERM, "old kernel surface"},
      {"personality", EPERM, "turns off address randomisation and other protections"},
      {"syslog", EPERM, "the kernel's log"},
      {"lookup_dcookie", EPERM, "kernel surface"},
      {"nfsservctl", ENOSYS, "kernel surface"},
      {"vhangup", EPERM, "terminals"},
      {"kcmp", EPERM, "compares kernel pointers of other processes"},
      {"pidfd_getfd", EPERM, "descriptors of other processes"},
      {"process_madvise", EPERM, "memory of other processes"},
      {"move_pages", EPERM, "memory of other processes"},
      {"migrate_pages", EPERM, "memory of other processes"},
      {"fanotify_init", EPERM, "kernel surface"},
      {"mknod", EPERM, "device nodes and overlay whiteouts"},
      {"mknodat", EPERM, "device nodes and overlay whiteouts"},
  };
  return rules;
}

int syscall_number(const SyscallRule& rule) {
  return rule.number != 0 ? rule.number : seccomp_syscall_resolve_name(rule.name);
}

namespace {

struct Release {
  void operator()(scmp_filter_ctx context) const { seccomp_release(context); }
};
using Context = std::unique_ptr<void, Release>;

// The SCMP_A macros are C99 compound literals, which clang does not take for C++.
scmp_arg_cmp compare(unsigned argument, scmp_compare how, std::uint64_t value) {
  return {argument, how, value, 0};
}
// The kernel looks at the low 32 bits of an int; so must we.
scmp_arg_cmp equals_int(unsigned argument, std::uint64_t value) {
  return {argument, SCMP_CMP_MASKED_EQ, 0xFFFFFFFFULL, value};
}
scmp_arg_cmp has_bits(unsigned argument, std::uint64_t mask, std::uint64_t value) {
  return {argument, SCMP_CMP_MASKED_EQ, mask, value};
}

int deny(scmp_filter_ctx context, int syscall, const std::vector<scmp_arg_cmp>& when) {
  return seccomp_rule_add_array(context, SCMP_ACT_ERRNO(EPERM), syscall, static_cast<unsigned>(when.size()),
                                when.data());
}

Error failed(const std::string& step, int error) {
  return sys_error("cannot build the seccomp filter: " + step, -error);
}

Status add_table(scmp_filter_ctx context) {
  for (const SyscallRule& rule : syscall_rules()) {
    const bool node = std::string(rule.name) == "mknod" || std::string(rule.name) == "mknodat";
    if (node) continue;  // add_nodes
    const int number = syscall_number(rule);
    if (number == __NR_SCMP_ERROR)
      return make_error(Code::internal, std::string("no system call ") + rule.name);
    int error = seccomp_rule_add(context, SCMP_ACT_ERRNO(static_cast<unsigned>(rule.error)), number, 0);
    if (error != 0) return failed(rule.name, error);
  }
  return {};
}

// FIFOs and sockets stay possible (make and test suites use them); character and block nodes are not.
Status add_nodes(scmp_filter_ctx context) {
  for (std::uint64_t type : {0020000ULL /* S_IFCHR */, 0060000ULL /* S_IFBLK */}) {
    int error = deny(context, SCMP_SYS(mknod), {has_bits(1, 0170000, type)});
    if (error == 0) error = deny(context, SCMP_SYS(mknodat), {has_bits(2, 0170000, type)});
    if (error != 0) return failed("mknod", error);
  }
  return {};
}

Status add_clone(scmp_filter_ctx context) {
  constexpr std::uint64_t kNamespaces[] = {CLONE_NEWUSER, CLONE_NEWNS,  CLONE_NEWPID,   CLONE_NEWNET,
                                           CLONE_NEWIPC,  CLONE_NEWUTS, CLONE_NEWCGROUP};
  for (std::uint64_t flag : kNamespaces) {
    int error = deny(context, SCMP_SYS(clone), {has_bits(0, flag, flag)});
    if (error != 0) return failed("clone", error);
  }
  return {};
}

// CVE-2019-10063 was a filter that compared all 64 bits.
Status add_ioctl(scmp_filter_ctx context) {
  for (std::uint64_t request : {0x5412ULL /* TIOCSTI */, 0x541CULL /* TIOCLINUX */}) {
    if (int error = deny(context, SCMP_SYS(ioctl), {equals_int(1, request)}); error != 0)
      return failed("ioctl", error);
  }
  return {};
}

// An allow-list of families has to be said as ranges: 1 (UNIX), 2 (INET), 10 (INET6), 16 (NETLINK, ROUTE
// only). A pair is made from a socket of the family first, so it is held to UNIX, the only family that has
// pairs.
Status add_socket(scmp_filter_ctx context) {
  int error = 0;
  for (std::uint64_t family = 0; family < 64 && error == 0; ++family) {
    if (family != AF_UNIX) error = deny(context, SCMP_SYS(socketpair), {equals_int(0, family)});
    if (family == AF_UNIX || family == AF_INET || family == AF_INET6 || family == AF_NETLINK) continue;
    if (error == 0) error = deny(context, SCMP_SYS(socket), {equals_int(0, family)});
  }
  for (int call : {SCMP_SYS(socket), SCMP_SYS(socketpair)}) {
    if (error == 0) error = deny(context, call, {compare(0, SCMP_CMP_GE, 64)});
  }
  if (error == 0) {
    error = deny(context, SCMP_SYS(socket), {equals_int(0, AF_NETLINK), compare(2, SCMP_CMP_NE, 0)});
  }
  if (error != 0) return failed("socket", error);
  return {};
}

// PID 1 of the box has the program's uid: without these a program could take its processor time or its limits
// away, and with them the deadline and the report.
Status add_init_guard(scmp_filter_ctx context) {
  int error = 0;
  for (int call : {SCMP_SYS(prlimit64), SCMP_SYS(sched_setscheduler), SCMP_SYS(sched_setparam),
                   SCMP_SYS(sched_setattr), SCMP_SYS(sched_setaffinity)}) {
    if (error == 0) error = deny(context, call, {equals_int(0, 1)});
  }
  // By process only, and not PID 1: groups and users would include it. (PRIO_PROCESS is 0,
  // IOPRIO_WHO_PROCESS 1.)
  if (error == 0) error = deny(context, SCMP_SYS(setpriority), {compare(0, SCMP_CMP_NE, 0)});
  if (error == 0) error = deny(context, SCMP_SYS(setpriority), {equals_int(1, 1)});
  if (error == 0) error = deny(context, SCMP_SYS(ioprio_set), {compare(0, SCMP_CMP_NE, 1)});
  if (error == 0) error = deny(context, SCMP_SYS(ioprio_set), {equals_int(1, 1)});
  if (error != 0) return failed("PID 1", error);
  return {};
}

}  // namespace

Result<std::string> compile_seccomp_filter() {
  Context context(seccomp_init(SCMP_ACT_ALLOW));
  if (!context) return make_error(Code::internal, "cannot build the seccomp filter");
  // Any other architecture's numbers mean other calls (x32, ia32 socketcall): such a process ends.
  int error = seccomp_attr_set(context.get(), SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);
  if (error == 0) error = seccomp_attr_set(context.get(), SCMP_FLTATR_CTL_OPTIMIZE, 2);
  if (error != 0) return failed("attributes", error);
  TRY_VOID(add_table(context.get()));
  TRY_VOID(add_nodes(context.get()));
  TRY_VOID(add_clone(context.get()));
  TRY_VOID(add_ioctl(context.get()));
  TRY_VOID(add_socket(context.get()));
  TRY_VOID(add_init_guard(context.get()));
  UniqueFd file(::memfd_create("seccomp", MFD_CLOEXEC));
  if (!file.valid()) return sys_error("memfd_create", errno);
  error = seccomp_export_bpf(context.get(), file.get());
  if (error != 0) return failed("export", error);
  if (::lseek(file.get(), 0, SEEK_SET) != 0) return sys_error("lseek", errno);
  return read_to_end(file.get(), 1U << 20U);
}

}  // namespace cofferdam::sandbox
