#include "init/box.h"

#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>

#include "init/landlock.h"
#include "init/mounts.h"
#include "init/network.h"
#include "init/probes.h"
#include "init/protocol.h"
#include "init/restrict.h"
#include "init/supervise.h"
#include "init/sys.h"

namespace cofferdam::init {
namespace {

using plan::Layer;

int box_namespaces(const plan::Plan& plan) {
  int flags = CLONE_NEWPID | CLONE_NEWNS;  // never without: init ends its namespace by kill(-1)
  if (has_layer(plan, Layer::own_cgroup)) flags |= CLONE_NEWCGROUP;
  if (has_layer(plan, Layer::own_network)) flags |= CLONE_NEWNET;
  if (has_layer(plan, Layer::own_ipc)) flags |= CLONE_NEWIPC;
  if (has_layer(plan, Layer::own_uts)) flags |= CLONE_NEWUTS;
  return flags;
}

std::uint64_t monotonic_us() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000 + static_cast<std::uint64_t>(now.tv_nsec) / 1000;
}

void die_with_parent() {
  check(::prctl(PR_SET_PDEATHSIG, SIGKILL) == 0, "prctl");
}

// setns(2): the user namespace first, because it brings the capabilities that the mount namespace asks for.
void join_storage() {
  check(::setns(plan::kUsernsFd, CLONE_NEWUSER) == 0, "join the storage's user namespace");
  check(::setns(plan::kMntnsFd, CLONE_NEWNS) == 0, "join the storage's mount namespace");
  ::close(plan::kUsernsFd);
  ::close(plan::kMntnsFd);
  // Joining changed our credentials, which cleared both; the maps below /proc/self need the second.
  die_with_parent();
  check(::prctl(PR_SET_DUMPABLE, 1) == 0, "prctl");
}

// The new root is put together below /box, a name in the storage's own root (keeper.cc).
void build_root(const plan::Plan& plan) {
  make_private();
  unsigned long no_exec = 0;
  if (plan.shell == 0) no_exec = MS_NOEXEC;
  check(::mount("tmpfs", "/box", "tmpfs", MS_NOSUID | MS_NODEV | no_exec,
                "size=4m,nr_inodes=1024,mode=0755") == 0,
        "mount the root");
  build_tree(plan.ops, "/box");
  change_root("/box", nullptr);
  if (has_layer(plan, Layer::read_only_root)) set_read_only("/", false);
  if (!has_layer(plan, Layer::nosuid)) allow_set_id("/tmp");
}

// What of it is not there can only be the gate's wish.
void give_up_rights(const plan::Plan& plan) {
  if (has_layer(plan, Layer::no_new_privs)) {
    check(::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0,
          "no_new_privs");  // before seccomp, which asks for it
  }
  const bool filtered = has_layer(plan, Layer::seccomp);
  // Without no_new_privs only CAP_SYS_ADMIN may load a filter: seccomp(2).
  const bool early = !has_layer(plan, Layer::no_new_privs);
  if (filtered && early) load_seccomp(plan.seccomp);
  if (has_layer(plan, Layer::capabilities)) {
    drop_capabilities();
  } else {
    keep_capabilities();
  }
  // Nobody in the box can trace or read PID 1.
  check(::prctl(PR_SET_DUMPABLE, has_layer(plan, Layer::opaque_init) ? 0 : 1) == 0, "prctl");
  // Last, so that everything above may use what it forbids.
  if (filtered && !early) load_seccomp(plan.seccomp);
}

// PID 1 of the box. The order is the security argument; each line says what would break if it moved.
[[noreturn]] void box_init(const plan::Plan& plan, int announced) {
  die_with_parent();
  // Until our pid has been reported: the supervisor looks at us from outside once we say that we are ready.
  char byte = 0;
  check(::read(announced, &byte, 1) == 0, "wait to be announced");
  ::close(announced);
  if (has_layer(plan, Layer::own_uts)) check(::sethostname("cofferdam", 9) == 0, "sethostname");
  if (has_layer(plan, Layer::own_network)) {
    set_up_network(plan.listeners);  // needs the capabilities of the storage's user namespace
  }
  build_root(plan);  // likewise; proc is mounted while the host's proc is still visible
  // A second layer under the filter's, for this pid namespace (kernel 6.3, Documentation/userspace-api/
  // mfd_noexec.rst). Where it may not be set, the filter is there all the same.
  if (plan.shell == 0) (void)write_file("/proc/sys/vm/memfd_noexec", "2");
  if (has_layer(plan, Layer::nested_userns)) {
    // From here no right over any mount above.
    const unsigned id = has_layer(plan, Layer::identity) ? plan::kInsideId : 0;
    enter_user_namespace(CLONE_NEWNS, id, id);
  }
  // In the box's own user namespace, while /proc/sys can be written.
  if (has_layer(plan, Layer::userns_limit)) forbid_user_namespaces();
  if (has_layer(plan, Layer::masked_proc)) mask(plan.masked);  // after the last use of /proc/sys
  if (has_layer(plan, Layer::read_only_proc)) protect(plan.read_only);
  const int landlock = make_landlock(plan);  // with the root as it will be; the children of ours enter it
  if (has_layer(plan, Layer::rlimits)) set_limits(plan);
  give_up_rights(plan);
  const std::uint64_t begin = monotonic_us();
  run_probes(plan, landlock);  // under exactly what the program will have
  send_text(plan::from_init::ready, number(monotonic_us() - begin));
  supervise(plan, landlock);
}

}  // namespace

void run_box(const plan::Plan& plan) {
  join_storage();
  int announced[2];
  check(::pipe2(announced, O_CLOEXEC) == 0, "pipe");
  // clone(2) with fork semantics; we are single-threaded.
  long pid = ::syscall(SYS_clone, box_namespaces(plan) | SIGCHLD, nullptr, nullptr, nullptr, nullptr);
  check(pid >= 0, "create the box's namespaces");
  if (pid == 0) {
    ::close(announced[1]);
    box_init(plan, announced[0]);
  }
  send_text(plan::from_init::pid, number(static_cast<std::uint64_t>(pid)));
  // Only the box's own processes may hold its pipes and its end of the control socket.
  ::syscall(SYS_close_range, 0U, ~0U, 0U);
  int status = 0;
  while (::waitpid(static_cast<pid_t>(pid), &status, 0) < 0 && errno == EINTR) {
  }
  // The kernel lets PID 1 be reaped only once its namespace is empty (pid_namespaces(7)): our own end is
  // the supervisor's proof that the box is gone.
  ::_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 124);
}

}  // namespace cofferdam::init
