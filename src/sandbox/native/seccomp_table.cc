#include "sandbox/native/seccomp_table.h"

#include <fmt/core.h>
#include <linux/sched.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <cerrno>
#include <iterator>

namespace cofferdam::sandbox {
namespace {

using Is = ArgumentTest::Is;
using Rules = std::vector<SyscallRule>;

constexpr std::uint32_t kNamespaceFlags =
    CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP;
constexpr std::uint32_t kTiocsti = 0x5412;
constexpr std::uint32_t kTioclinux = 0x541C;
constexpr std::uint32_t kNoexecSeal = 0x8;  // MFD_NOEXEC_SEAL, which glibc 2.36 does not name
constexpr std::uint32_t kPrioProcess = 0;
constexpr std::uint32_t kIoprioProcess = 1;  // IOPRIO_WHO_PROCESS
constexpr std::uint32_t kInit = 1;           // PID 1 of the box

ArgumentTest in(unsigned argument, std::vector<std::uint32_t> values, std::uint32_t mask = 0xFFFFFFFFU) {
  return {argument, Is::any_of, mask, std::move(values)};
}
ArgumentTest not_in(unsigned argument, std::vector<std::uint32_t> values) {
  return {argument, Is::none_of, 0xFFFFFFFFU, std::move(values)};
}
ArgumentTest has(unsigned argument, std::uint32_t bits) {
  return {argument, Is::any_bit, bits, {}};
}

// The name and its number cannot differ.
#define CALL(name) #name, SYS_##name

// ENOSYS where programs have a fallback that they take only on ENOSYS (clone3, io_uring, the mount API).
Rules namespaces_and_mounts() {
  return {
      {CALL(unshare), EPERM, "new namespaces"},
      {CALL(setns), EPERM, "other namespaces"},
      {CALL(clone), EPERM, "new namespaces", {has(0, kNamespaceFlags)}},
      {CALL(clone3), ENOSYS, "its flags are behind a pointer that a filter cannot read"},
      {CALL(mount), EPERM, "mounts"},
      {CALL(umount2), EPERM, "mounts"},
      {CALL(pivot_root), EPERM, "mounts"},
      {CALL(chroot), EPERM, "mounts"},
      {CALL(fsopen), ENOSYS, "new mount API"},
      {CALL(fsconfig), ENOSYS, "new mount API"},
      {CALL(fsmount), ENOSYS, "new mount API"},
      {CALL(fspick), ENOSYS, "new mount API"},
      {CALL(open_tree), ENOSYS, "new mount API"},
      {CALL(move_mount), ENOSYS, "new mount API"},
      {CALL(mount_setattr), ENOSYS, "new mount API"},
      {CALL(sethostname), EPERM, "the box's name"},
      {CALL(setdomainname), EPERM, "the box's name"},
  };
}

Rules kernel_interfaces() {
  return {
      {CALL(io_uring_setup), ENOSYS, "a second system-call interface that no filter sees"},
      {CALL(io_uring_enter), ENOSYS, "a second system-call interface that no filter sees"},
      {CALL(io_uring_register), ENOSYS, "a second system-call interface that no filter sees"},
      {CALL(userfaultfd), ENOSYS, "makes kernel races winnable"},
      {CALL(bpf), EPERM, "kernel programs"},
      {CALL(perf_event_open), EPERM, "kernel surface"},
      {CALL(keyctl), EPERM, "keyrings are not namespaced"},
      {CALL(add_key), EPERM, "keyrings are not namespaced"},
      {CALL(request_key), EPERM, "keyrings are not namespaced"},
      {CALL(open_by_handle_at), EPERM, "files by number, past every path"},
      {CALL(name_to_handle_at), EPERM, "files by number, past every path"},
      {CALL(fanotify_init), EPERM, "kernel surface"},
      {CALL(fanotify_mark), EPERM, "kernel surface"},
      {CALL(lookup_dcookie), EPERM, "kernel surface"},
      {CALL(nfsservctl), ENOSYS, "kernel surface"},
      {CALL(uselib), ENOSYS, "maps a library past execve"},
      {CALL(ustat), ENOSYS, "file systems by device number"},
      {CALL(sysfs), ENOSYS, "lists the kernel's file systems"},
      {CALL(vhangup), EPERM, "terminals"},
      {CALL(modify_ldt), EPERM, "old kernel surface"},
      {CALL(personality), EPERM, "turns off address randomisation and other protections"},
      {CALL(syslog), EPERM, "the kernel's log"},
  };
}

Rules host_settings() {
  return {
      {CALL(kexec_load), EPERM, "another kernel"},
      {CALL(kexec_file_load), EPERM, "another kernel"},
      {CALL(init_module), EPERM, "kernel modules"},
      {CALL(finit_module), EPERM, "kernel modules"},
      {CALL(delete_module), EPERM, "kernel modules"},
      {CALL(acct), EPERM, "host accounting"},
      {CALL(quotactl), EPERM, "host quotas"},
      {CALL(swapon), EPERM, "host swap"},
      {CALL(swapoff), EPERM, "host swap"},
      {CALL(reboot), EPERM, "the host"},
      {CALL(settimeofday), EPERM, "the host's clock"},
      {CALL(clock_settime), EPERM, "the host's clock"},
      {CALL(clock_adjtime), EPERM, "the host's clock"},
      {CALL(adjtimex), EPERM, "the host's clock"},
      {CALL(iopl), EPERM, "hardware ports"},
      {CALL(ioperm), EPERM, "hardware ports"},
  };
}

// ptrace(2) and process_vm_readv(2) are not here: debuggers and LeakSanitizer need them, and the box's
// processes are all that there is to see.
Rules other_processes() {
  Rules rules = {
      {CALL(kcmp), EPERM, "compares kernel pointers of other processes"},
      {CALL(pidfd_getfd), EPERM, "descriptors of other processes"},
      {CALL(process_madvise), EPERM, "memory of other processes"},
      {CALL(move_pages), EPERM, "memory of other processes"},
      {CALL(migrate_pages), EPERM, "memory of other processes"},
  };
  // PID 1 of the box has the program's uid: without these a program could take its processor time or its
  // limits away, and with them the deadline and the report.
  const char* guard = "PID 1 of the box keeps its limits and its processor";
  rules.push_back({CALL(prlimit64), EPERM, guard, {in(0, {kInit})}});
  rules.push_back({CALL(sched_setscheduler), EPERM, guard, {in(0, {kInit})}});
  rules.push_back({CALL(sched_setparam), EPERM, guard, {in(0, {kInit})}});
  rules.push_back({CALL(sched_setattr), EPERM, guard, {in(0, {kInit})}});
  rules.push_back({CALL(sched_setaffinity), EPERM, guard, {in(0, {kInit})}});
  const char* single = "by process only: a group or a user would include PID 1 of the box";
  rules.push_back({CALL(setpriority), EPERM, single, {not_in(0, {kPrioProcess})}});
  rules.push_back({CALL(setpriority), EPERM, guard, {in(1, {kInit})}});
  rules.push_back({CALL(ioprio_set), EPERM, single, {not_in(0, {kIoprioProcess})}});
  rules.push_back({CALL(ioprio_set), EPERM, guard, {in(1, {kInit})}});
  return rules;
}

Rules by_argument() {
  const char* nodes = "device nodes and overlay whiteouts; FIFOs and sockets stay possible";
  const char* families = "only UNIX, INET, INET6 and NETLINK sockets: no VSOCK to the host, no kernel crypto";
  return {
      {CALL(ioctl), EPERM, "typing into a terminal (TIOCSTI, TIOCLINUX)", {in(1, {kTiocsti, kTioclinux})}},
      {CALL(mknod), EPERM, nodes, {in(1, {S_IFCHR, S_IFBLK}, S_IFMT)}},
      {CALL(mknodat), EPERM, nodes, {in(2, {S_IFCHR, S_IFBLK}, S_IFMT)}},
      {CALL(socket), EPERM, families, {not_in(0, {AF_UNIX, AF_INET, AF_INET6, AF_NETLINK})}},
      {CALL(socket), EPERM, "of NETLINK only ROUTE", {in(0, {AF_NETLINK}), not_in(2, {0})}},
      {CALL(socketpair),
       EPERM,
       "a pair is made from a socket of the family first; only UNIX has pairs",
       {not_in(0, {AF_UNIX})}},
      {CALL(memfd_create),
       EACCES,
       "a program in memory is not one of the agent's files",
       {in(1, {0}, kNoexecSeal)},
       RuleScope::without_shell},
  };
}

// Every call from 440 on is judged, those that stay allowed too; later ones do not exist in a box.
Rules newer_calls() {
  const char* path = "an older call with flags: the same checks";
  const char* own_memory = "the caller's own memory";
  const char* futex = "waiting, by the caller's own memory";
  return {
      {"epoll_pwait2", 441, 0, "waiting, with nanoseconds"},
      {"quotactl_fd", 443, EPERM, "host quotas"},
      {"landlock_create_ruleset", 444, 0, "a program may restrict itself further"},
      {"landlock_add_rule", 445, 0, "a program may restrict itself further"},
      {"landlock_restrict_self", 446, 0, "a program may restrict itself further"},
      {"memfd_secret", 447, ENOSYS, "memory that nobody can account for"},
      {"process_mrelease", 448, 0, "only what is being killed already"},
      {"futex_waitv", 449, 0, futex},
      {"set_mempolicy_home_node", 450, 0, own_memory},
      {"cachestat", 451, 0, "page-cache counters of a file that the caller may write or owns"},
      {"fchmodat2", 452, 0, path},
      {"map_shadow_stack", 453, 0, own_memory},
      {"futex_wake", 454, 0, futex},
      {"futex_wait", 455, 0, futex},
      {"futex_requeue", 456, 0, futex},
      {"statmount", 457, ENOSYS, "new mount API: a second view of the mount table"},
      {"listmount", 458, ENOSYS, "new mount API: a second view of the mount table"},
      {"lsm_get_self_attr", 459, 0, "the caller's own attributes, as /proc/self/attr"},
      {"lsm_set_self_attr", 460, ENOSYS, "kernel surface: security modules are not the box's to set"},
      {"lsm_list_modules", 461, 0, "names, as in /proc/self/attr"},
      {"mseal", 462, 0, own_memory},
      {"setxattrat", 463, 0, path},
      {"getxattrat", 464, 0, path},
      {"listxattrat", 465, 0, path},
      {"removexattrat", 466, 0, path},
      {"open_tree_attr", 467, ENOSYS, "new mount API"},
      {"file_getattr", 468, 0, "as the ioctl that it replaces"},
      {"file_setattr", 469, 0, "as the ioctl that it replaces: the privileged flags need capabilities"},
      {"listns", 470, ENOSYS, "lists namespaces"},
  };
}

#undef CALL

std::string test_text(const ArgumentTest& test) {
  if (test.is == Is::any_bit) return fmt::format("argument {} has a bit of {:#x}", test.argument, test.mask);
  std::string out = fmt::format("argument {}", test.argument);
  if (test.mask != 0xFFFFFFFFU) out += fmt::format(" & {:#x}", test.mask);
  out += test.is == Is::any_of ? " is" : " is not";
  const char* between = " ";
  for (std::uint32_t value : test.values) {
    out += fmt::format("{}{:#x}", between, value);
    between = test.is == Is::any_of ? " or " : " nor ";
  }
  return out;
}

}  // namespace

const std::vector<SyscallRule>& syscall_rules() {
  static const Rules rules = [] {
    Rules all;
    for (Rules part : {namespaces_and_mounts(), kernel_interfaces(), host_settings(), other_processes(),
                       by_argument(), newer_calls()}) {
      all.insert(all.end(), std::make_move_iterator(part.begin()), std::make_move_iterator(part.end()));
    }
    return all;
  }();
  return rules;
}

std::string condition_text(const SyscallRule& rule) {
  if (rule.when.empty()) return "always";
  std::string out;
  for (const ArgumentTest& test : rule.when) {
    if (!out.empty()) out += ", ";
    out += test_text(test);
  }
  return out;
}

}  // namespace cofferdam::sandbox
