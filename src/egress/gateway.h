// The gateway, seen from the supervisor: a process of its own that accepts on the listener which the box
// handed out, and is the only way out of the box.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "base/process.h"
#include "base/result.h"
#include "contract/config.h"
#include "contract/invocation.h"
#include "egress/prices.h"

namespace cofferdam::egress {

// One policy per attempt, read once by the gateway.
struct GatewayPolicy {
  contract::Vendor vendor = contract::Vendor::none;
  std::string upstream;             // https://host[:port]
  std::string ca_bundle;            // PEM file; empty: the system's
  std::vector<std::string> models;  // only these may be asked for
  std::uint64_t max_requests = 0;
  std::uint64_t max_tokens = 0;  // ceiling of max_tokens in one request
  // Budgets of the whole attempt; 0: not limited.
  std::uint64_t total_tokens = 0;
  std::uint64_t max_cost_micros = 0;
  std::uint64_t max_parallel = 0;
  std::optional<ModelPrice> price = {};  // of the models; none: what they cost is not known
  // Whom the gateway becomes, without any group, before it accepts anything; for a supervisor that is root.
  std::optional<UserIds> run_as = {};
};

// The rule of `HEAD /`, which the gateway answers by itself: not a request to the vendor.
inline constexpr const char* kPresenceRule = "presence";

// What the gateway reports, one per request that it answered. No bodies, no secrets.
struct GatewayEvent {
  std::string method;
  std::string path;  // printable, bounded
  std::string rule;  // the route that allowed it, or the rule that denied it
  bool denied = false;
  bool limit = false;  // denied because a budget is used up; the rule is the budget's name
  int status = 0;      // as answered to the box
  std::uint64_t request_bytes = 0;
  std::uint64_t response_bytes = 0;
  std::uint64_t took_ms = 0;
  std::uint64_t input_tokens = 0;  // from the vendor's usage fields, if seen; the cache's are part of it
  std::uint64_t output_tokens = 0;
  std::uint64_t cache_read_tokens = 0;
  std::uint64_t cache_write_tokens = 0;
  std::uint64_t cost_micros = 0;  // by the policy's price
  std::string retry_after;        // as the vendor said it
};
Result<GatewayEvent> decode_gateway_event(std::string_view line);
std::string encode_gateway_event(const GatewayEvent& event);

class Gateway {
 public:
  // Starts `program internal-gateway`; the credentials come from the broker, over `broker`, and never through
  // argv, environment or this process. Returns when the gateway has said that it is ready, or with the reason why it is not (bad CA bundle,
  // malformed upstream).
  static Result<Gateway> start(const std::string& program, const GatewayPolicy& policy,
                               UniqueFd broker, UniqueFd listener);
  int events_fd() const { return events_.get(); }  // NDJSON lines of GatewayEvent; readable, end: it died
  Child& process() { return child_; }

 private:
  Gateway(Child child, UniqueFd events) : child_(std::move(child)), events_(std::move(events)) {}
  Child child_;
  UniqueFd events_;
};

// Body of `cofferdam internal-gateway`. Descriptors: 3 policy (read to the end), 4 listener, 5 events (written),
// 6 the broker's socket. Returns the exit code.
int gateway_main();

}  // namespace cofferdam::egress
