// cofferdam-init: what stands between an agent and the host from the inside. Two roles, chosen by the plan:
// the keeper of an attempt's storage, and PID 1 of a box. Static, single-threaded, without third-party code.
//
// It reads its plan from descriptor 4, speaks with its supervisor over descriptor 3 (protocol.h), and takes
// nothing from its arguments or environment.
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "init/box.h"
#include "init/keeper.h"
#include "init/plan.h"
#include "init/sys.h"

namespace {

using cofferdam::init::check;

std::string read_plan() {
  struct stat info {};
  check(::fstat(cofferdam::plan::kPlanFd, &info) == 0, "stat the plan");
  if (info.st_size < 0 || info.st_size > (16 << 20))
    cofferdam::init::die_with("the plan is too large", EFBIG);
  std::string bytes(static_cast<std::size_t>(info.st_size), '\0');
  std::size_t at = 0;
  while (at < bytes.size()) {
    ssize_t n = ::read(cofferdam::plan::kPlanFd, bytes.data() + at, bytes.size() - at);
    if (n < 0 && errno == EINTR) continue;
    check(n > 0, "read the plan");
    at += static_cast<std::size_t>(n);
  }
  ::close(cofferdam::plan::kPlanFd);
  return bytes;
}

}  // namespace

int main() {
  // Started by hand there is no supervisor behind descriptor 3: say what this program is.
  struct stat info {};
  if (::fstat(cofferdam::plan::kControlFd, &info) != 0 || !S_ISSOCK(info.st_mode)) {
    static const char kText[] =
        "cofferdam-init: an internal program of cofferdam; run 'cofferdam --help' instead\n";
    ssize_t ignored = ::write(2, kText, sizeof kText - 1);
    (void)ignored;
    return 2;
  }
  ::umask(022);
  ::prctl(PR_SET_NAME, "cofferdam-init");  // executed by descriptor we would be called by its number
  cofferdam::plan::Plan plan;
  if (!cofferdam::plan::decode_plan(read_plan(), &plan)) cofferdam::init::die_with("decode the plan", EINVAL);
  if (plan.role == cofferdam::plan::Role::keeper) cofferdam::init::run_keeper(plan);
  cofferdam::init::run_box(plan);
}
