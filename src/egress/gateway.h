// The gateway, seen from the supervisor: a process of its own that accepts on the listener which the box
// handed out, and is the only way out of the box.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/fd.h"
#include "base/process.h"
#include "base/result.h"
#include "contract/invocation.h"
#include "egress/confine.h"
#include "egress/credential.h"
#include "egress/prices.h"
#include "egress/transport.h"

namespace cofferdam::egress {

// One policy per attempt, read once by the gateway.
struct GatewayPolicy {
  contract::Vendor vendor = contract::Vendor::none;  // none: only the transport's destinations are served
  CredentialKind credential_kind = CredentialKind::anthropic_api_key;
  std::string upstream;                        // https://host[:port][/prefix]
  std::string ca_bundle;                       // PEM file; empty: the system's
  std::vector<std::string> models;             // only these may be asked for
  std::vector<std::string> vendor_tools = {};  // server-side tools that the user has opted in to
  std::uint64_t max_requests = 0;
  std::uint64_t max_tokens = 0;  // ceiling of max_tokens in one request
  // Budgets of the whole attempt; 0: not limited.
  std::uint64_t total_tokens = 0;
  std::uint64_t max_cost_micros = 0;
  std::uint64_t max_parallel = 0;
  std::uint64_t max_connections = 64;  // of the box at a time
  // From its start until the gateway ends by itself, whatever its supervisor does; 0: never.
  std::uint64_t deadline_ms = 0;
  std::optional<ModelPrice> price = {};  // of the models; none: what they cost is not known
  // Whom the gateway becomes, without any group, before it accepts anything; for a supervisor that is root.
  std::optional<UserIds> run_as = {};
  TransportPolicy transport = {};
};

// The rule of `HEAD /`, which the gateway answers by itself: not a request to the vendor.
inline constexpr const char* kPresenceRule = "presence";
// The rule of the last event of a gateway that its own deadline has ended.
inline constexpr const char* kDeadlineRule = "deadline";
// The failure of an exchange that the box has left: before the end, or behind the last event of a stream.
inline constexpr const char* kClientGone = "client-gone";

// What the gateway reports, one per request that it answered. No bodies, no secrets.
struct GatewayEvent {
  std::string method;
  std::string path;  // printable, bounded
  std::string rule;  // the route that allowed it, or the rule that denied it
  bool denied = false;
  // Denied because a budget is used up, whose name the rule is; or allowed, and the answer was larger than it
  // may be.
  bool limit = false;
  int status = 0;  // as answered to the box
  std::uint64_t request_bytes = 0;
  std::uint64_t response_bytes = 0;
  std::uint64_t took_ms = 0;
  std::uint64_t input_tokens = 0;  // from the vendor's usage fields, if seen; the cache's are part of it
  std::uint64_t output_tokens = 0;
  std::uint64_t cache_read_tokens = 0;
  std::uint64_t cache_write_tokens = 0;
  std::uint64_t cost_micros = 0;  // by the policy's price
  // The most that may have been used beyond it, of an answer whose last word on it was not heard: for the
  // budgets.
  std::uint64_t uncounted_tokens = 0;
  std::uint64_t uncounted_micros = 0;
  std::string retry_after;  // as the vendor said it
  std::string failure;      // failure_name(), when there was no good answer; empty: there was
  // Of the allow-list's listener: whom the box asked for, as far as that could be read.
  bool tunnelled = false;
  std::string host;
  std::uint16_t port = 0;
};
Result<GatewayEvent> decode_gateway_event(std::string_view line);
std::string encode_gateway_event(const GatewayEvent& event);

// What the gateway gets over descriptors. Without a vendor there is neither its listener nor its broker.
struct GatewayEnds {
  UniqueFd broker;
  UniqueFd listener;
  UniqueFd tunnels = {};                           // a second listener, for the policy's destinations
  UniqueFd capture = {};                           // a file that bodies are appended to (capture.h), if asked
  std::vector<UniqueFd> destination_brokers = {};  // of the destinations with a credential, in their order
};

class Gateway {
 public:
  // Starts `program internal-gateway`; the credentials come from the broker, over `broker`, and never through
  // argv, environment or this process. Returns when the gateway has said that it is ready, or with the reason
  // why it is not (bad CA bundle, malformed upstream). Starts `program internal-resolver` too, if the policy
  // names a host that is not an address.
  static Result<Gateway> start(const std::string& program, const GatewayPolicy& policy, GatewayEnds ends);
  int events_fd() const { return events_.get(); }  // NDJSON lines of GatewayEvent; readable, end: it died
  Child& process() { return child_; }
  // What the gateway has given away; on record because the kernel decides about a part of it.
  const Confinement& confinement() const { return confinement_; }

 private:
  Gateway(Child child, Child resolver, UniqueFd events, Confinement confinement)
      : resolver_(std::move(resolver)),
        child_(std::move(child)),
        events_(std::move(events)),
        confinement_(confinement) {}
  Child resolver_;
  Child child_;
  UniqueFd events_;
  Confinement confinement_;
};

// For tests: called inside the gateway before and after it has given its rights away. An error is the
// gateway's first line, so it comes back from Gateway::start().
struct GatewayHooks {
  std::function<Status()> before_confinement;
  std::function<Status()> after_confinement;
};
// Body of `cofferdam internal-gateway`, with the descriptors of gateway_fds.h. Returns the exit code.
int gateway_main(const GatewayHooks& hooks = {});

}  // namespace cofferdam::egress
