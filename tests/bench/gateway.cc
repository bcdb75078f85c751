// A gateway as the supervisor starts it: a policy, a broker's socket with a credential in it, a listener. Its
// events are read and counted: they are the proof that what was measured went through the policy.
#include "egress/gateway.h"

#include <poll.h>
#include <unistd.h>

#include <cstdio>
#include <stdexcept>
#include <string>
#include <utility>

#include "base/io.h"
#include "bench/verbs.h"
#include "egress/credential.h"
#include "unit/egress/tls_vendor.h"

namespace cofferdam::bench {
namespace {

constexpr uid_t kNobody = 65534;
constexpr int kBacklog = 4096;  // a thousand connections may come at once

template <class T>
T must(Result<T> result) {
  if (!result) throw std::runtime_error(result.error().line());
  return std::move(*result);
}

egress::GatewayPolicy policy_from(const Options& options) {
  egress::GatewayPolicy policy;
  policy.vendor = contract::Vendor::anthropic;
  policy.upstream = "https://127.0.0.1:" + options.text("upstream");
  // Beside the system's certificates, which most gateways hold in memory.
  policy.transport.extra_ca_bundle = options.text("ca");
  policy.models = {options.text("model")};
  policy.max_requests = 1'000'000;
  policy.max_tokens = 64'000;
  policy.max_connections = options.number("connections", 64);
  if (::geteuid() == 0) policy.run_as = UserIds{kNobody, kNobody};
  return policy;
}

struct Counts {
  std::uint64_t relayed = 0;
  std::uint64_t others = 0;
  std::string first_other;
};

void count(const std::string& line, Counts* into) {
  const egress::GatewayEvent event = must(egress::decode_gateway_event(line));
  if (!event.denied && event.status == 200 && event.rule == "messages") {
    ++into->relayed;
    return;
  }
  if (into->others++ == 0) into->first_other = event.rule + " " + std::to_string(event.status);
}

// Until the runner closes our input; an end of the events is a gateway that died.
void watch(const egress::Gateway& gateway, Counts* counts) {
  std::string unread;
  while (true) {
    pollfd entries[] = {{gateway.events_fd(), POLLIN, 0}, {STDIN_FILENO, POLLIN, 0}};
    ::poll(entries, 2, -1);
    if (entries[0].revents != 0) {
      bool would_block = false;
      const std::string bytes = must(read_some(gateway.events_fd(), 65536, &would_block));
      if (bytes.empty() && !would_block) throw std::runtime_error("the gateway died");
      unread += bytes;
      for (std::size_t end = unread.find('\n'); end != std::string::npos; end = unread.find('\n')) {
        count(unread.substr(0, end), counts);
        unread.erase(0, end + 1);
      }
      continue;
    }
    char byte = 0;
    if (entries[1].revents != 0 && ::read(STDIN_FILENO, &byte, 1) <= 0) return;
  }
}

}  // namespace

int gateway_main(const Options& options) {
  SocketPair broker = must(make_seqpacket_pair());
  egress::VendorCredential credential;
  credential.token = egress::Secret("sk-bench-0000000000000000");
  credential.seq = 1;
  Status sent = send_message(broker.ours.get(), egress::encode_grant(credential).view());
  if (!sent) throw std::runtime_error(sent.error().line());
  std::uint16_t port = 0;
  UniqueFd listener = egress::testing::listen_on_loopback(&port, kBacklog);
  egress::Gateway gateway =
      must(egress::Gateway::start(options.text("program"), policy_from(options),
                                  egress::GatewayEnds{std::move(broker.theirs), std::move(listener)}));
  std::printf("{\"port\": %u, \"pid\": %d}\n", port, gateway.process().pid());
  std::fflush(stdout);
  Counts counts;
  watch(gateway, &counts);
  std::printf("{\"relayed\": %llu, \"others\": %llu, \"first_other\": \"%s\"}\n",
              static_cast<unsigned long long>(counts.relayed), static_cast<unsigned long long>(counts.others),
              counts.first_other.c_str());
  return 0;
}

}  // namespace cofferdam::bench
