// What a request wants, and what becomes of it: pure decisions over the attempt's immutable policy. Routes
// are data.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "egress/gateway.h"

namespace cofferdam::egress {

// What the HTTP adapter understood; exactly the bytes that were sent, nothing canonicalised.
struct Intent {
  std::string_view method;
  std::string_view path;
  std::string_view query;
  bool has_query = false;
  bool upgrade = false;  // asks for another protocol on this connection
};

enum class Action {
  relay,      // to the vendor, once the body has been judged
  answer_ok,  // by the gateway itself
  deny,
};

struct Decision {
  Action action = Action::deny;
  int status = 403;
  std::string rule;   // the route's name, or the rule that denied it
  std::string where;  // JSON path of what was denied; empty: the request as a whole
  bool limit = false;
  std::string target = {};  // what the vendor is asked for, without the upstream's own prefix; relay only
};
// Whether such a credential can be shown to this vendor at all.
bool is_kind_of(CredentialKind credential, contract::Vendor vendor);
Decision deny(std::string rule, std::string where = {}, int status = 403);

// By method, path and query alone: the body is not read before.
Decision decide_route(const GatewayPolicy& policy, const Intent& intent);
// `used`: requests that were allowed before this one.
Decision decide_budget(const GatewayPolicy& policy, std::uint64_t used);

// The body of a refusal, in the vendor's error shape with a machine-readable part of ours.
std::string denial_body(const Decision& decision);
// The body for a vendor that could not be reached or did not behave ("vendor-tls", "redirect", ...).
std::string vendor_failure_body(std::string_view kind);

}  // namespace cofferdam::egress
