// Whether the box's system-call filter answers a call, without the call ever being made. A filter of our own
// asks for a tracer at this one call. Where several filters are loaded, the kernel takes the strictest
// answer, and an errno and a kill are stricter than a trace (seccomp(2)): so our tracer is only asked when
// the box's filter lets the call pass, and it then ends the process before the kernel has run anything.
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>

#include "probe/acts.h"

namespace cofferdam::probe {
namespace {

constexpr unsigned kX32Bit = 0x40000000U;

// Our own answer for one call of one architecture; everything else is allowed.
bool ask_tracer_at(unsigned architecture, unsigned call) {
  sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, arch)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, architecture, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRACE),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog all{sizeof program / sizeof program[0], program};
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return false;
  return ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &all) == 0;
}

struct Call {
  unsigned number = 0;
  unsigned long arguments[5] = {};
  bool foreign = false;  // by the 32-bit gate, int $0x80
};

long make_call(const Call& call) {
  if (!call.foreign) {
    return ::syscall(static_cast<long>(call.number), call.arguments[0], call.arguments[1], call.arguments[2],
                     call.arguments[3], call.arguments[4]);
  }
  long result = static_cast<long>(call.number);
  asm volatile("int $0x80" : "+a"(result) : "b"(0), "c"(0), "d"(0) : "memory", "r8", "r9", "r10", "r11");
  return result;
}

// Exit codes of the traced child beside the errno of the call.
constexpr int kCallReturned = 250;
constexpr int kNoFilter = 251;

[[noreturn]] void traced(const Call& call) {
  ::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
  ::raise(SIGSTOP);  // until the tracer has said what it wants to hear of
  if (!ask_tracer_at(call.foreign ? AUDIT_ARCH_I386 : AUDIT_ARCH_X86_64, call.number)) ::_exit(kNoFilter);
  const long result = make_call(call);
  const int error = result >= 0 ? kCallReturned : errno;
  ::_exit(error < kCallReturned ? error : kCallReturned);
}

Outcome judge_signal(int signal) {
  if (signal == SIGSYS) return {Outcome::Kind::denied, "SIGSYS"};
  if (signal == SIGSEGV) return {Outcome::Kind::unavailable, "this kernel has no such way in"};
  return failed("the call ended by a signal");
}

Outcome watch(pid_t pid) {
  while (true) {
    int status = 0;
    if (::waitpid(pid, &status, 0) != pid) return failed("waitpid");
    if (WIFSIGNALED(status)) return judge_signal(WTERMSIG(status));
    if (WIFEXITED(status)) {
      const int code = WEXITSTATUS(status);
      if (code == kNoFilter || code == kCallReturned) return failed("no filter of our own");
      return denied_by(code);
    }
    if ((status >> 8) == (SIGTRAP | (PTRACE_EVENT_SECCOMP << 8))) {
      ::kill(pid, SIGKILL);
      ::waitpid(pid, &status, 0);
      return {Outcome::Kind::allowed, "the filter lets it pass"};
    }
    const int signal = WSTOPSIG(status);
    ::ptrace(PTRACE_CONT, pid, nullptr, signal == SIGSTOP ? 0 : signal);
  }
}

Outcome try_call(const Call& call) {
  const pid_t pid = ::fork();
  if (pid < 0) return failed("fork");
  if (pid == 0) traced(call);
  int status = 0;
  if (::waitpid(pid, &status, 0) != pid || !WIFSTOPPED(status)) return failed("tracing");
  if (::ptrace(PTRACE_SETOPTIONS, pid, nullptr, PTRACE_O_TRACESECCOMP | PTRACE_O_EXITKILL) != 0)
    return failed("PTRACE_SETOPTIONS");
  ::ptrace(PTRACE_CONT, pid, nullptr, 0);
  return watch(pid);
}

// NUMBER [ARGUMENT...]
Outcome filtered(const Args& args) {
  Call call;
  call.number = static_cast<unsigned>(number(args, 0));
  for (std::size_t i = 0; i < 5; ++i) call.arguments[i] = static_cast<unsigned long>(number(args, i + 1));
  return try_call(call);
}

Outcome filtered_x32(const Args& args) {
  Call call;
  call.number = static_cast<unsigned>(number(args, 0)) | kX32Bit;
  return try_call(call);
}

Outcome filtered_ia32(const Args& args) {
  Call call;
  call.number = static_cast<unsigned>(number(args, 0));
  call.foreign = true;
  return try_call(call);
}

}  // namespace

std::vector<Act> filter_acts() {
  return {{"filtered", filtered}, {"filtered-x32", filtered_x32}, {"filtered-ia32", filtered_ia32}};
}

}  // namespace cofferdam::probe
