#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "base/fd.h"
#include "base/io.h"
#include "contract/json.h"
#include "egress/gateway.h"
#include "egress/gateway_setup.h"
#include "egress/server.h"

namespace cofferdam::egress {
namespace {

constexpr int kSetupFd = 3;
constexpr int kListenerFd = 4;
constexpr int kEventsFd = 5;

// Before the credential is read: nobody may trace or dump this process, and nothing that it starts (it starts
// nothing) could gain rights. Dying with the supervisor was arranged by spawn().
Status harden() {
  ::signal(SIGPIPE, SIG_IGN);
  if (::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0) return sys_error("PR_SET_DUMPABLE", errno);
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return sys_error("PR_SET_NO_NEW_PRIVS", errno);
  const rlimit none{0, 0};
  if (::setrlimit(RLIMIT_CORE, &none) != 0) return sys_error("RLIMIT_CORE", errno);
  if (::syscall(SYS_close_range, static_cast<unsigned>(kEventsFd) + 1U, ~0U, 0U) != 0) {
    return sys_error("close_range", errno);
  }
  for (int fd : {kSetupFd, kListenerFd, kEventsFd}) {
    if (::fcntl(fd, F_SETFD, FD_CLOEXEC) != 0) return sys_error("descriptor " + std::to_string(fd), errno);
  }
  return {};
}

Result<GatewaySetup> read_setup() {
  UniqueFd pipe(kSetupFd);
  TRY(std::string bytes, read_to_end(pipe.get(), kMaxSetupBytes));
  auto setup = decode_setup(bytes);
  wipe_string(&bytes);
  return setup;
}

Status run(UniqueFd listener, int events_fd) {
  TRY(GatewaySetup setup, read_setup());
  return serve(setup, std::move(listener), events_fd);
}

}  // namespace

int gateway_main() {
  Status status = harden();
  UniqueFd listener(kListenerFd);
  UniqueFd events(kEventsFd);
  if (status) status = run(std::move(listener), events.get());
  if (status) return 0;
  std::string line =
      contract::canonical(contract::Json{{"error", contract::json_text(status.error().line(), 2048)}});
  // If nobody reads any more, there is nobody to tell.
  (void)write_all(events.get(), line + "\n").has_value();
  return 1;
}

}  // namespace cofferdam::egress
