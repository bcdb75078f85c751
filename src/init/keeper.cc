#include "init/keeper.h"

#include <poll.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "init/mounts.h"
#include "init/protocol.h"
#include "init/restrict.h"
#include "init/sys.h"

namespace cofferdam::init {
namespace {

// Blocks until the supervisor releases us, or is gone and the time that a recovery has is over. Its end of
// the socket is the only thing that we believe.
void wait_for_release(const plan::Plan& plan) {
  // Not before the supervisor has written down who we are: nobody would find a keeper that outlived it.
  bool kept = false;
  while (true) {
    char byte = 0;
    ssize_t n = ::recv(plan::kControlFd, &byte, 1, 0);
    if (n < 0 && errno == EINTR) continue;
    if (n != 1) break;
    if (byte == plan::to_init::release) return;
    if (byte == plan::to_init::keep) kept = true;
  }
  if (kept) ::poll(nullptr, 0, static_cast<int>(plan.linger_ms));
}

}  // namespace

void run_keeper(const plan::Plan& plan) {
  enter_user_namespace(CLONE_NEWNS, plan::kInsideId, plan::kInsideId);
  make_private();
  // A root of our own, with the host's tree under /host: nothing of the host is hidden by what we mount, and
  // sources are found at fixed names. /tmp is only the place where this root is put together.
  check(::mount("tmpfs", "/tmp", "tmpfs", MS_NOSUID | MS_NODEV, "size=1m,nr_inodes=256,mode=0755") == 0,
        "mount the storage root");
  check(::mkdir("/tmp/host", 0755) == 0, "mkdir");
  change_root("/tmp", "host");
  send_text(plan::from_init::ready, build_tree(plan.ops, ""));
  wait_for_release(plan);
  ::_exit(0);
}

}  // namespace cofferdam::init
