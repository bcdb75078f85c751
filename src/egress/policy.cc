#include "egress/policy.h"

#include <array>
#include <utility>

#include "contract/json.h"

namespace cofferdam::egress {
namespace {

using contract::Json;
using contract::Vendor;

using KindSet = unsigned;
constexpr KindSet kind(CredentialKind one) {
  return 1U << static_cast<unsigned>(one);
}
constexpr KindSet kAnthropicKinds = kind(CredentialKind::anthropic_api_key) |
                                    kind(CredentialKind::anthropic_oauth) | kind(CredentialKind::bearer);
constexpr KindSet kChatGpt = kind(CredentialKind::chatgpt);
constexpr KindSet kOpenAiKinds = kind(CredentialKind::openai_api_key) | kind(CredentialKind::bearer);

struct Route {
  const char* name;
  Vendor vendor;
  KindSet kinds;
  std::string_view method;
  std::string_view path;
  std::array<std::string_view, 2> queries;  // the empty one stands for no query at all
  bool upgrade;
  Action action;
  int status;
  std::string_view target;  // at the vendor; the query goes with it
};

// Claude Code asks for "?beta=true"; before its first request it sends HEAD / to see whether somebody is
// there. Codex asks for a WebSocket first when it may, and falls back to POST after a 426. A ChatGPT login
// has its backend instead of the API. Token counting, files, batches and everything of the account are no
// routes.
constexpr Route kRoutes[] = {
    {"messages",
     Vendor::anthropic,
     kAnthropicKinds,
     "POST",
     "/v1/messages",
     {"", "beta=true"},
     false,
     Action::relay,
     200,
     "/v1/messages"},
    {kPresenceRule,
     Vendor::anthropic,
     kAnthropicKinds,
     "HEAD",
     "/",
     {"", ""},
     false,
     Action::answer_ok,
     200,
     ""},
    {"responses",
     Vendor::openai,
     kOpenAiKinds,
     "POST",
     "/v1/responses",
     {"", ""},
     false,
     Action::relay,
     200,
     "/v1/responses"},
    {"responses",
     Vendor::openai,
     kChatGpt,
     "POST",
     "/v1/responses",
     {"", ""},
     false,
     Action::relay,
     200,
     "/backend-api/codex/responses"},
    {"websocket",
     Vendor::openai,
     kOpenAiKinds | kChatGpt,
     "GET",
     "/v1/responses",
     {"", ""},
     true,
     Action::deny,
     426,
     ""},
};

bool query_matches(const Route& route, const Intent& intent) {
  for (std::string_view query : route.queries) {
    if (query == intent.query && intent.has_query == !query.empty()) return true;
  }
  return false;
}

}  // namespace

bool is_kind_of(CredentialKind credential, Vendor vendor) {
  if (vendor == Vendor::anthropic) return (kind(credential) & kAnthropicKinds) != 0;
  return vendor == Vendor::openai && (kind(credential) & (kOpenAiKinds | kChatGpt)) != 0;
}

Decision deny(std::string rule, std::string where, int status) {
  return {Action::deny, status, std::move(rule), std::move(where), false};
}

Decision decide_route(const GatewayPolicy& policy, const Intent& intent) {
  std::string rule = intent.upgrade ? "http: upgrade" : "route";
  for (const Route& route : kRoutes) {
    const bool ours = route.vendor == policy.vendor && (route.kinds & kind(policy.credential_kind)) != 0;
    if (!ours || route.path != intent.path || route.upgrade != intent.upgrade) continue;
    if (route.method != intent.method) {
      if (!intent.upgrade) rule = "method";
    } else if (!query_matches(route, intent)) {
      if (!intent.upgrade) rule = "query";
    } else {
      Decision decision{route.action, route.status, route.name, {}, false};
      decision.target = std::string(route.target);
      if (intent.has_query) decision.target += "?" + std::string(intent.query);
      return decision;
    }
  }
  return deny(std::move(rule), {}, intent.upgrade ? 400 : 403);
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
