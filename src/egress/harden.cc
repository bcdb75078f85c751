#include "egress/harden.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>

namespace cofferdam::egress {

Status harden_process(int last, const std::vector<int>& optional) {
  ::signal(SIGPIPE, SIG_IGN);
  if (::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0) return sys_error("PR_SET_DUMPABLE", errno);
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return sys_error("PR_SET_NO_NEW_PRIVS", errno);
  const rlimit none{0, 0};
  if (::setrlimit(RLIMIT_CORE, &none) != 0) return sys_error("RLIMIT_CORE", errno);
  if (::syscall(SYS_close_range, static_cast<unsigned>(last) + 1U, ~0U, 0U) != 0) {
    return sys_error("close_range", errno);
  }
  for (int fd = 3; fd <= last; ++fd) {
    const bool may_be_absent = std::find(optional.begin(), optional.end(), fd) != optional.end();
    if (::fcntl(fd, F_SETFD, FD_CLOEXEC) != 0 && !(may_be_absent && errno == EBADF)) {
      return sys_error("descriptor " + std::to_string(fd), errno);
    }
  }
  return {};
}

}  // namespace cofferdam::egress
