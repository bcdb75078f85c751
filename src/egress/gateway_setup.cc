#include "egress/gateway_setup.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include "base/text.h"
#include "contract/json.h"
#include "egress/body_table.h"
#include "egress/headers.h"
#include "egress/policy.h"

namespace cofferdam::egress {
namespace {

using contract::Json;
using contract::kMaxJsonInteger;
using contract::Vendor;

// In the order of the enumeration.
constexpr std::array<const char*, 5> kKindNames = {"anthropic-api-key", "anthropic-oauth", "openai-api-key",
                                                   "chatgpt", "bearer"};

// What cannot be meant is refused before anything starts, not request by request.
Status check_meaning(const GatewayPolicy& policy) {
  if (policy.vendor != Vendor::none && !is_kind_of(policy.credential_kind, policy.vendor)) {
    return make_error(Code::config, std::string("a credential of the kind ") +
                                        credential_kind_name(policy.credential_kind) + " is none of " +
                                        contract::vendor_name(policy.vendor) + "'s");
  }
  std::vector<std::string> known;
  if (const BodyTable* table = body_table(policy.vendor)) {
    known.assign(table->vendor_tools.begin(), table->vendor_tools.end());
  }
  for (const std::string& tool : policy.vendor_tools) {
    if (std::find(known.begin(), known.end(), tool) != known.end()) continue;
    return make_error(Code::config, "vendor_tools: \"" + printable(tool, 64) + "\" cannot be opted in to",
                      "known: " + join(known, ", "));
  }
  return {};
}

Result<GatewayPolicy> decode_policy(std::string_view line) {
  TRY(Json json, contract::parse_json(line, kMaxSetupBytes));
  contract::JsonFault fault;
  contract::ObjectReader in(json, "$", &fault);
  GatewayPolicy policy;
  policy.vendor = static_cast<Vendor>(in.choice("vendor", {"none", "anthropic", "openai"}));
  policy.credential_kind = static_cast<CredentialKind>(
      in.choice("credential_kind", std::vector<std::string>(kKindNames.begin(), kKindNames.end())));
  policy.upstream = in.text("upstream", {1, 512});
  policy.ca_bundle = in.text("ca_bundle", {0, 4096});
  policy.models = in.texts("models", 0, 64, {1, 256});
  policy.vendor_tools = in.texts("vendor_tools", 0, 64, {1, 64});
  policy.max_requests = in.integer("max_requests", 0, kMaxJsonInteger);
  policy.max_tokens = in.integer("max_tokens", 1, kMaxJsonInteger);
  if (auto user = in.maybe_object("run_as", contract::Absent::only_null)) {
    UserIds ids;
    ids.uid = static_cast<uid_t>(user->integer("uid", 1, INT32_MAX));
    ids.gid = static_cast<gid_t>(user->integer("gid", 1, INT32_MAX));
    user->finish();
    policy.run_as = ids;
  }
  policy.transport = decode_transport(in.object("transport"));
  in.finish();
  if (fault.failed()) return fault.error().with("gateway policy");
  return policy;
}

}  // namespace

const char* credential_kind_name(CredentialKind kind) {
  return kKindNames.at(static_cast<std::size_t>(kind));
}

Result<Secret> encode_setup(const GatewayPolicy& policy, const std::string& credential) {
  Json json = {{"vendor", contract::vendor_name(policy.vendor)},
               {"credential_kind", credential_kind_name(policy.credential_kind)},
               {"upstream", contract::json_text(policy.upstream, 512)},
               {"ca_bundle", policy.ca_bundle},
               {"models", policy.models},
               {"vendor_tools", policy.vendor_tools},
               {"max_requests", contract::json_count(policy.max_requests)},
               {"max_tokens", contract::json_count(policy.max_tokens)},
               {"run_as", nullptr},
               {"transport", encode_transport(policy.transport)}};
  if (policy.run_as.has_value()) json["run_as"] = {{"uid", policy.run_as->uid}, {"gid", policy.run_as->gid}};
  std::string text = contract::canonical(json) + "\n";
  if (text.size() + credential.size() > kMaxSetupBytes) {
    return make_error(Code::config, "the gateway's policy is too large", "name fewer models");
  }
  text.reserve(text.size() + credential.size());
  text += credential;
  Secret out(text);
  wipe_string(&text);
  return out;
}

Result<GatewaySetup> decode_setup(std::string_view bytes) {
  std::size_t end = bytes.find('\n');
  if (end == std::string_view::npos) return make_error(Code::protocol, "the gateway's policy is incomplete");
  GatewaySetup setup;
  TRY(setup.policy, decode_policy(bytes.substr(0, end)));
  TRY(setup.origin, parse_origin(setup.policy.upstream));
  TRY_VOID(check_meaning(setup.policy));
  TRY(setup.credential, credential_lines(setup.policy.credential_kind, bytes.substr(end + 1)));
  return setup;
}

}  // namespace cofferdam::egress
