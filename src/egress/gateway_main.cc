#include <fcntl.h>

#include <string>
#include <utility>

#include "base/fd.h"
#include "base/io.h"
#include "egress/first_line.h"
#include "egress/gateway.h"
#include "egress/gateway_fds.h"
#include "egress/gateway_setup.h"
#include "egress/harden.h"
#include "egress/server.h"
#include "egress/token_store.h"

namespace cofferdam::egress {
namespace {

UniqueFd take_optional(int fd) {
  return ::fcntl(fd, F_GETFD) < 0 ? UniqueFd() : UniqueFd(fd);
}

Result<GatewaySetup> read_setup() {
  UniqueFd pipe(kSetupFd);
  TRY(std::string bytes, read_to_end(pipe.get(), kMaxSetupBytes));
  return decode_setup(bytes);
}

Status run(const GatewayHooks& hooks, ServerInput input) {
  UniqueFd filter(kFilterFd);
  TRY(input.filter, read_to_end(filter.get(), kMaxSetupBytes));
  filter.reset();
  TRY(GatewaySetup setup, read_setup());
  TRY(input.credential, receive_first_credential(input.broker.get()));
  return serve(setup, hooks, std::move(input));
}

}  // namespace

int gateway_main(const GatewayHooks& hooks) {
  Status status = harden_process(kLastFd, {kNamesFd, kTunnelFd, kCaptureFd});
  UniqueFd events(kEventsFd);
  ServerInput input;
  input.listener = UniqueFd(kListenerFd);
  input.broker = UniqueFd(kBrokerFd);
  input.names = take_optional(kNamesFd);
  input.tunnels = take_optional(kTunnelFd);
  input.capture = take_optional(kCaptureFd);
  input.events_fd = events.get();
  if (status) status = run(hooks, std::move(input));
  if (status) return 0;
  // If nobody reads any more, there is nobody to tell.
  (void)write_all(events.get(), encode_start_error(status.error())).has_value();
  return 1;
}

}  // namespace cofferdam::egress
