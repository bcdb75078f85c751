#include "egress/gateway_filter.h"

#include <fcntl.h>
#include <seccomp.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <utility>

#include "base/fd.h"
#include "base/io.h"

namespace cofferdam::egress {

// socket, sendto, sendmsg, mmap, mprotect, fcntl and ioctl are allowed by argument, further down.
const std::vector<AllowedCall>& allowed_calls() {
  static const std::vector<AllowedCall> calls = {
      {"read", "the event loop's own descriptors"},
      {"readv", "Asio reads with it"},
      {"write", "events"},
      {"writev", "Asio writes with it"},
      {"close", "connections end"},
      {"recvfrom", "one buffer from a connection"},
      {"recvmsg", "several buffers from a connection"},
      {"accept", "the box's listener"},
      {"accept4", "the box's listener"},
      {"connect", "the vendor; where to is held by Landlock and by the address check"},
      {"shutdown", "half-closed connections"},
      {"getsockopt", "the result of connect"},
      {"setsockopt", "TCP_NODELAY"},
      {"getsockname", "Asio's view of a socket"},
      {"getpeername", "Asio's view of a socket"},
      {"epoll_wait", "the event loop"},
      {"epoll_pwait", "the event loop"},
      {"epoll_ctl", "the event loop"},
      {"poll", "events towards a slow supervisor"},
      {"ppoll", "poll of newer C libraries"},
      {"timerfd_settime", "the event loop's timer"},
      {"timerfd_create", "the event loop after a failure"},
      {"eventfd2", "the event loop's wake-up"},
      {"epoll_create1", "the event loop"},
      {"munmap", "memory"},
      {"mremap", "memory"},
      {"madvise", "memory"},
      {"brk", "memory"},
      {"mlock", "secrets stay out of swap"},
      {"sysinfo", "qsort(3) asks how much memory there is"},
      {"futex", "locks of the C library and of OpenSSL"},
      {"getrandom", "keys and nonces"},
      {"clock_gettime", "time, where the vDSO cannot tell"},
      {"gettimeofday", "time, where the vDSO cannot tell"},
      {"time", "time, where the vDSO cannot tell"},
      {"clock_nanosleep", "bounded pauses"},
      {"nanosleep", "bounded pauses"},
      {"restart_syscall", "the kernel's own way back into a wait"},
      {"getpid", "OpenSSL notices forks by it"},
      {"gettid", "the C library's locks"},
      {"sched_yield", "locks"},
      {"rt_sigaction", "SIGTERM and SIGPIPE"},
      {"rt_sigprocmask", "SIGTERM and SIGPIPE"},
      {"rt_sigreturn", "the end of a signal handler"},
      {"sigaltstack", "stacks of signal handlers"},
      {"exit", "the end"},
      {"exit_group", "the end"},
  };
  return calls;
}

const std::vector<AllowedCall>& fatal_calls() {
  static const std::vector<AllowedCall> calls = {
      {"execve", "programs"},
      {"execveat", "programs"},
      {"fork", "processes"},
      {"vfork", "processes"},
      {"ptrace", "other processes"},
      {"process_vm_readv", "memory of other processes"},
      {"process_vm_writev", "memory of other processes"},
      {"pidfd_getfd", "descriptors of other processes"},
      {"bpf", "kernel programs"},
      {"io_uring_setup", "a second system-call interface that no filter sees"},
  };
  return calls;
}

namespace {

// Builds with sanitizers ask the kernel, by a pipe, whether memory can be read.
#if defined(__SANITIZE_ADDRESS__)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

struct Release {
  void operator()(scmp_filter_ctx context) const { seccomp_release(context); }
};
using Context = std::unique_ptr<void, Release>;

Error failed(const std::string& step, int error) {
  return sys_error("cannot build the gateway's system-call filter: " + step, -error);
}

Status add_table(scmp_filter_ctx context, const std::vector<AllowedCall>& calls, std::uint32_t action) {
  for (const AllowedCall& call : calls) {
    int number = seccomp_syscall_resolve_name(call.name);
    if (number == __NR_SCMP_ERROR) continue;  // unknown to this libseccomp: stays EPERM
    int error = seccomp_rule_add(context, action, number, 0);
    if (error != 0) return failed(call.name, error);
  }
  return {};
}

// The low 32 bits count: the kernel ignores the rest of an int.
scmp_arg_cmp equals(unsigned argument, unsigned long value) {
  return {argument, SCMP_CMP_MASKED_EQ, 0xFFFFFFFFUL, value};
}

// TCP only: of SOCK_STREAM with both flags, in the two families of the internet.
Status add_sockets(scmp_filter_ctx context) {
  constexpr unsigned long kTypeWithoutFlags =
      0xFFFFFFFFUL & ~static_cast<unsigned long>(SOCK_CLOEXEC | SOCK_NONBLOCK);
  for (unsigned long family : {static_cast<unsigned long>(AF_INET), static_cast<unsigned long>(AF_INET6)}) {
    scmp_arg_cmp type{1, SCMP_CMP_MASKED_EQ, kTypeWithoutFlags, SOCK_STREAM};
    for (unsigned long protocol : {0UL, 6UL /* IPPROTO_TCP */}) {
      int error = seccomp_rule_add(context, SCMP_ACT_ALLOW, SCMP_SYS(socket), 3, equals(0, family), type,
                                   equals(2, protocol));
      if (error != 0) return failed("socket", error);
    }
  }
  return {};
}

// Sending must not connect: MSG_FASTOPEN (tcp(7)) does, and past the hook by which Landlock holds connect(2)
// to the policy's ports.
Status add_sending(scmp_filter_ctx context) {
  for (auto [call, flags] : {std::pair{SCMP_SYS(sendto), 3U}, std::pair{SCMP_SYS(sendmsg), 2U}}) {
    scmp_arg_cmp no_fast_open{flags, SCMP_CMP_MASKED_EQ, MSG_FASTOPEN, 0};
    int error = seccomp_rule_add(context, SCMP_ACT_ALLOW, call, 1, no_fast_open);
    if (error != 0) return failed("sending", error);
  }
  return {};
}

// Memory that can be executed is never made.
Status add_memory(scmp_filter_ctx context) {
  scmp_arg_cmp not_executable{2, SCMP_CMP_MASKED_EQ, PROT_EXEC, 0};
  for (int call : {SCMP_SYS(mmap), SCMP_SYS(mprotect)}) {
    int error = seccomp_rule_add(context, SCMP_ACT_ALLOW, call, 1, not_executable);
    if (error != 0) return failed("memory", error);
  }
  return {};
}

Status add_descriptors(scmp_filter_ctx context) {
  for (int command : {F_GETFL, F_SETFL, F_GETFD, F_SETFD, F_DUPFD_CLOEXEC}) {
    int error = seccomp_rule_add(context, SCMP_ACT_ALLOW, SCMP_SYS(fcntl), 1,
                                 equals(1, static_cast<unsigned long>(command)));
    if (error != 0) return failed("fcntl", error);
  }
  for (unsigned long request : {static_cast<unsigned long>(FIONBIO), static_cast<unsigned long>(FIONREAD)}) {
    int error = seccomp_rule_add(context, SCMP_ACT_ALLOW, SCMP_SYS(ioctl), 1, equals(1, request));
    if (error != 0) return failed("ioctl", error);
  }
  return {};
}

}  // namespace

Result<std::string> compile_gateway_filter() {
  Context context(seccomp_init(SCMP_ACT_ERRNO(EPERM)));
  if (!context) return make_error(Code::internal, "cannot build the gateway's system-call filter");
  // Any other architecture's numbers mean other calls: such a process ends.
  int error = seccomp_attr_set(context.get(), SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);
  if (error == 0) error = seccomp_attr_set(context.get(), SCMP_FLTATR_CTL_OPTIMIZE, 2);
  if (error != 0) return failed("attributes", error);
  TRY_VOID(add_table(context.get(), allowed_calls(), SCMP_ACT_ALLOW));
  if (kSanitized) {
    TRY_VOID(
        add_table(context.get(), {{"pipe", "the sanitizer"}, {"pipe2", "the sanitizer"}}, SCMP_ACT_ALLOW));
  }
  TRY_VOID(add_table(context.get(), fatal_calls(), SCMP_ACT_KILL_PROCESS));
  TRY_VOID(add_sockets(context.get()));
  TRY_VOID(add_sending(context.get()));
  TRY_VOID(add_memory(context.get()));
  TRY_VOID(add_descriptors(context.get()));
  UniqueFd file(::memfd_create("seccomp", MFD_CLOEXEC));
  if (!file.valid()) return sys_error("memfd_create", errno);
  error = seccomp_export_bpf(context.get(), file.get());
  if (error != 0) return failed("export", error);
  if (::lseek(file.get(), 0, SEEK_SET) != 0) return sys_error("lseek", errno);
  return read_to_end(file.get(), 1U << 20U);
}

}  // namespace cofferdam::egress
