#include <fcntl.h>

#include <string>
#include <utility>
#include <vector>

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

Result<std::vector<BrokerLine>> take_destination_brokers(const TransportPolicy& transport) {
  std::vector<BrokerLine> out;
  for (const Destination& destination : transport.destinations) {
    if (destination.credential.empty()) continue;
    BrokerLine line{UniqueFd(kFirstDestinationFd + static_cast<int>(out.size())), {}};
    TRY(line.first, receive_first_credential(line.socket.get()));
    out.push_back(std::move(line));
  }
  return out;
}

// Without a vendor there is only the allow-list's listener.
std::vector<int> optional_fds() {
  std::vector<int> out{kListenerFd, kBrokerFd, kNamesFd, kTunnelFd, kCaptureFd};
  for (int fd = kFirstDestinationFd; fd <= kLastFd; ++fd) out.push_back(fd);
  return out;
}

Status run(const GatewayHooks& hooks, ServerInput input) {
  UniqueFd filter(kFilterFd);
  TRY(input.filter, read_to_end(filter.get(), kMaxSetupBytes));
  filter.reset();
  TRY(GatewaySetup setup, read_setup());
  if (setup.policy.vendor != contract::Vendor::none) {
    TRY(input.credential, receive_first_credential(input.broker.get()));
    // Routes, flags and bodies are decided for one kind.
    if (input.credential.kind != setup.policy.credential_kind) {
      return make_error(Code::protocol, "the broker's credential is not of the policy's kind");
    }
  }
  TRY(input.destination_brokers, take_destination_brokers(setup.policy.transport));
  return serve(setup, hooks, std::move(input));
}

}  // namespace

int gateway_main(const GatewayHooks& hooks) {
  Status status = harden_process(kLastFd, optional_fds());
  UniqueFd events(kEventsFd);
  ServerInput input;
  input.listener = take_optional(kListenerFd);
  input.broker = take_optional(kBrokerFd);
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
