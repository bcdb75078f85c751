#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "base/fd.h"
#include "base/io.h"
#include "contract/json.h"
#include "egress/confine.h"
#include "egress/gateway.h"
#include "egress/gateway_fds.h"
#include "egress/gateway_setup.h"
#include "egress/server.h"

namespace cofferdam::egress {
namespace {

// Before the credential is read. Dying with the supervisor was arranged by spawn().
Status harden() {
  TRY_VOID(harden_process());
  if (::syscall(SYS_close_range, static_cast<unsigned>(kLastFd) + 1U, ~0U, 0U) != 0) {
    return sys_error("close_range", errno);
  }
  for (int fd = kSetupFd; fd <= kLastFd; ++fd) {
    const bool optional = fd == kNamesFd || fd == kTunnelFd;
    if (::fcntl(fd, F_SETFD, FD_CLOEXEC) != 0 && !(optional && errno == EBADF)) {
      return sys_error("descriptor " + std::to_string(fd), errno);
    }
  }
  return {};
}

UniqueFd take_optional(int fd) {
  return ::fcntl(fd, F_GETFD) < 0 ? UniqueFd() : UniqueFd(fd);
}

Result<GatewaySetup> read_setup() {
  UniqueFd pipe(kSetupFd);
  TRY(std::string bytes, read_to_end(pipe.get(), kMaxSetupBytes));
  auto setup = decode_setup(bytes);
  wipe_string(&bytes);
  return setup;
}

Status run(const GatewayHooks& hooks, ServerFds fds) {
  UniqueFd filter(kFilterFd);
  TRY(fds.filter, read_to_end(filter.get(), kMaxSetupBytes));
  filter.reset();
  TRY(GatewaySetup setup, read_setup());
  return serve(setup, hooks, std::move(fds));
}

}  // namespace

int gateway_main(const GatewayHooks& hooks) {
  Status status = harden();
  UniqueFd events(kEventsFd);
  ServerFds fds{UniqueFd(kListenerFd), take_optional(kNamesFd), take_optional(kTunnelFd), events.get(), {}};
  if (status) status = run(hooks, std::move(fds));
  if (status) return 0;
  std::string line =
      contract::canonical(contract::Json{{"error", contract::json_text(status.error().line(), 2048)}});
  // If nobody reads any more, there is nobody to tell.
  (void)write_all(events.get(), line + "\n").has_value();
  return 1;
}

}  // namespace cofferdam::egress
