#include <string>
#include <utility>

#include "base/fd.h"
#include "base/io.h"
#include "egress/first_line.h"
#include "egress/gateway.h"
#include "egress/gateway_setup.h"
#include "egress/harden.h"
#include "egress/server.h"
#include "egress/token_store.h"

namespace cofferdam::egress {
namespace {

constexpr int kSetupFd = 3;
constexpr int kListenerFd = 4;
constexpr int kEventsFd = 5;
constexpr int kBrokerFd = 6;

Result<GatewaySetup> read_setup() {
  UniqueFd pipe(kSetupFd);
  TRY(std::string bytes, read_to_end(pipe.get(), kMaxSetupBytes));
  return decode_setup(bytes);
}

Status run(UniqueFd listener, int events_fd, UniqueFd broker) {
  TRY(GatewaySetup setup, read_setup());
  TRY(VendorCredential credential, receive_first_credential(broker.get()));
  return serve(setup, {std::move(listener), events_fd, std::move(broker), std::move(credential)});
}

}  // namespace

int gateway_main() {
  Status status = harden_process({kSetupFd, kListenerFd, kEventsFd, kBrokerFd});
  UniqueFd listener(kListenerFd);
  UniqueFd events(kEventsFd);
  UniqueFd broker(kBrokerFd);
  if (status) status = run(std::move(listener), events.get(), std::move(broker));
  if (status) return 0;
  // If nobody reads any more, there is nobody to tell.
  (void)write_all(events.get(), encode_start_error(status.error())).has_value();
  return 1;
}

}  // namespace cofferdam::egress
