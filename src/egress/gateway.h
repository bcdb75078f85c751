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
#include "egress/transport.h"

namespace cofferdam::egress {

// What the credential is, and with it where and how it is sent.
enum class CredentialKind {
  anthropic_api_key,  // x-api-key
  anthropic_oauth,    // Authorization: Bearer, with the beta flag that goes with it
  openai_api_key,     // Authorization: Bearer
  chatgpt,            // {"access_token":"..","account_id":".."}; the ChatGPT backend instead of the API
  bearer,             // Authorization: Bearer, to an internal model gateway that speaks the vendor's API
};
const char* credential_kind_name(CredentialKind kind);

// One policy per attempt, read once by the gateway.
struct GatewayPolicy {
  contract::Vendor vendor = contract::Vendor::none;
  CredentialKind credential_kind = CredentialKind::anthropic_api_key;
  std::string upstream;                        // https://host[:port][/prefix]
  std::string ca_bundle;                       // PEM file; empty: the system's
  std::vector<std::string> models;             // only these may be asked for
  std::vector<std::string> vendor_tools = {};  // server-side tools that the user has opted in to
  std::uint64_t max_requests = 0;
  std::uint64_t max_tokens = 0;  // ceiling of max_tokens in one request
  // Whom the gateway becomes, without any group, before it accepts anything; for a supervisor that is root.
  std::optional<UserIds> run_as = {};
  TransportPolicy transport = {};
};

// The rule of `HEAD /`, which the gateway answers by itself: not a request to the vendor.
inline constexpr const char* kPresenceRule = "presence";
// The failure of an exchange that the box has left: before the end, or behind the last event of a stream.
inline constexpr const char* kClientGone = "client-gone";

// What the gateway reports, one per request that it answered. No bodies, no secrets.
struct GatewayEvent {
  std::string method;
  std::string path;  // printable, bounded
  std::string rule;  // the route that allowed it, or the rule that denied it
  bool denied = false;
  // Denied because the request budget is used up; or allowed, and the answer was larger than it may be.
  bool limit = false;
  int status = 0;  // as answered to the box
  std::uint64_t request_bytes = 0;
  std::uint64_t response_bytes = 0;
  std::uint64_t took_ms = 0;
  std::uint64_t input_tokens = 0;  // from the vendor's usage fields, if seen
  std::uint64_t output_tokens = 0;
  std::string retry_after;  // as the vendor said it
  std::string failure;      // failure_name(), when there was no good answer; empty: there was
};
Result<GatewayEvent> decode_gateway_event(std::string_view line);
std::string encode_gateway_event(const GatewayEvent& event);

class Gateway {
 public:
  // Starts `program internal-gateway`; the credential goes over a pipe, never through argv or environment.
  // Returns when the gateway has said that it is ready, or with the reason why it is not (bad CA bundle,
  // malformed upstream).
  static Result<Gateway> start(const std::string& program, const GatewayPolicy& policy,
                               const std::string& credential, UniqueFd listener);
  int events_fd() const { return events_.get(); }  // NDJSON lines of GatewayEvent; readable, end: it died
  Child& process() { return child_; }

 private:
  Gateway(Child child, UniqueFd events) : child_(std::move(child)), events_(std::move(events)) {}
  Child child_;
  UniqueFd events_;
};

// Body of `cofferdam internal-gateway`. Descriptors: 3 policy and credential (read to the end), 4 listener,
// 5 events (written). Returns the exit code.
int gateway_main();

}  // namespace cofferdam::egress
