#include <sys/resource.h>

#include <cerrno>
#include <chrono>
#include <string>
#include <utility>

#include "base/fd.h"
#include "base/io.h"
#include "contract/json.h"
#include "egress/broker.h"
#include "egress/broker_source.h"
#include "egress/first_line.h"
#include "egress/harden.h"

namespace cofferdam::egress {
namespace {

constexpr int kSetupFd = 3;
constexpr int kSocketFd = 4;
constexpr int kReportFd = 5;
constexpr std::size_t kMaxSetupBytes = 64U << 10U;
constexpr std::size_t kMaxRequestBytes = 256;

// A broker needs few files and writes none but a login. A credential_command inherits these.
Status limit_resources() {
  const rlimit files{256, 256};
  const rlimit size{16U << 20U, 16U << 20U};
  if (::setrlimit(RLIMIT_NOFILE, &files) != 0) return sys_error("RLIMIT_NOFILE", errno);
  if (::setrlimit(RLIMIT_FSIZE, &size) != 0) return sys_error("RLIMIT_FSIZE", errno);
  return {};
}

Result<BrokerSource> read_source() {
  UniqueFd pipe(kSetupFd);
  TRY(std::string bytes, read_to_end(pipe.get(), kMaxSetupBytes));
  auto setup = decode_broker_setup(bytes);
  wipe_string(&bytes);
  if (!setup) return std::move(setup).error();
  return BrokerSource(*std::move(setup));
}

Status hand_out(int socket, const VendorCredential& credential) {
  Secret grant = encode_grant(credential);
  return send_message(socket, grant.view());
}

// Not even a gateway that is no longer ours, or a vendor that rejects every token, may rotate a login or run
// a command without end.
class RenewalPace {
 public:
  bool allows() {
    const auto at = std::chrono::steady_clock::now();
    if (count_ >= kMaxRenewals || (count_ > 0 && at < last_ + kPause)) return false;
    last_ = at;
    ++count_;
    return true;
  }

 private:
  static constexpr int kMaxRenewals = 200;
  static constexpr auto kPause = std::chrono::seconds(10);
  std::chrono::steady_clock::time_point last_{};
  int count_ = 0;
};

// One answer for each request; ends with the gateway.
Status serve_gateway(BrokerSource* source, int socket) {
  RenewalPace pace;
  while (true) {
    TRY(Message message, receive_message(socket, kMaxRequestBytes));
    if (message.closed) return {};
    TRY(RenewalRequest request, decode_renewal_request(message.bytes));
    if (!pace.allows()) {
      TRY_VOID(send_message(socket, encode_refusal("renewals come too fast, or too often")));
      continue;
    }
    auto credential = source->next(request.rejected);
    if (credential) {
      TRY_VOID(hand_out(socket, **credential));
    } else {
      TRY_VOID(send_message(socket, encode_refusal(credential.error().line())));
    }
  }
}

Status run(UniqueFd socket, UniqueFd report) {
  TRY_VOID(limit_resources());
  TRY(BrokerSource source, read_source());
  TRY(const VendorCredential* first, source.next(false));
  TRY_VOID(hand_out(socket.get(), *first));
  const contract::Json ready = {{"ready", credential_kind_name(first->kind)}};
  TRY_VOID(write_all(report.get(), contract::canonical(ready) + "\n"));
  report.reset();
  // The supervisor has its answer; from here on a failure is the end of renewals, nothing more.
  return serve_gateway(&source, socket.get());
}

}  // namespace

int broker_main() {
  Status status = harden_process(kReportFd);
  UniqueFd socket(kSocketFd);
  UniqueFd report(kReportFd);
  auto copy = duplicate(report.get());
  if (!copy) return 1;
  if (status) status = run(std::move(socket), std::move(report));
  if (status) return 0;
  // If nobody reads any more, there is nobody to tell.
  (void)write_all(copy->get(), encode_start_error(status.error())).has_value();
  return 1;
}

}  // namespace cofferdam::egress
