#include "egress/policy.h"

#include <array>
#include <utility>

#include "contract/json.h"

namespace cofferdam::egress {
namespace {

using contract::Json;
using contract::Vendor;

struct Route {
  const char* name;
  Vendor vendor;
  std::string_view method;
  std::string_view path;
  std::array<std::string_view, 2> queries;  // the empty one stands for no query at all
  Action action;
};

// Claude Code asks for "?beta=true"; before its first request it sends HEAD / to see whether somebody is
// there.
constexpr Route kRoutes[] = {
    {"messages", Vendor::anthropic, "POST", "/v1/messages", {"", "beta=true"}, Action::relay},
    {kPresenceRule, Vendor::anthropic, "HEAD", "/", {"", ""}, Action::answer_ok},
};

bool query_matches(const Route& route, const Intent& intent) {
  for (std::string_view query : route.queries) {
    if (query == intent.query && intent.has_query == !query.empty()) return true;
  }
  return false;
}

}  // namespace

Decision deny(std::string rule, std::string where, int status) {
  return {Action::deny, status, std::move(rule), std::move(where), false};
}

Decision decide_route(const GatewayPolicy& policy, const Intent& intent) {
  std::string rule = "route";
  for (const Route& route : kRoutes) {
    if (route.vendor != policy.vendor || route.path != intent.path) continue;
    if (route.method != intent.method) {
      rule = "method";
    } else if (!query_matches(route, intent)) {
      rule = "query";
    } else {
      return {route.action, 200, route.name, {}, false};
    }
  }
  return deny(std::move(rule));
}

Decision decide_budget(const GatewayPolicy& policy, std::uint64_t used) {
  if (used < policy.max_requests) return {Action::relay, 200, {}, {}, false};
  Decision decision = deny("requests");
  decision.limit = true;
  return decision;
}

std::string denial_body(const Decision& decision) {
  std::string what = decision.where.empty() ? decision.rule : decision.rule + " at " + decision.where;
  Json own = {{"denied", true}, {"rule", decision.rule}, {"retry", false}};
  if (!decision.where.empty()) own["path"] = decision.where;
  Json error = {{"type", "permission_error"},
                {"message", "denied by Cofferdam policy: " + what + "; do not retry"}};
  return contract::canonical(Json{{"type", "error"}, {"error", error}, {"cofferdam", own}});
}

std::string vendor_failure_body(std::string_view kind) {
  Json own = {{"denied", false}, {"rule", kind}, {"retry", kind != "redirect"}};
  Json error = {{"type", "api_error"},
                {"message", "Cofferdam could not get an answer from the vendor: " + std::string(kind)}};
  return contract::canonical(Json{{"type", "error"}, {"error", error}, {"cofferdam", own}});
}

}  // namespace cofferdam::egress
