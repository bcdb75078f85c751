#include "egress/gateway_setup.h"

#include <algorithm>
#include <cstdint>
#include <set>
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
using contract::kMaxPrice;
using contract::Vendor;

// Both sides of every tunnel, connections to the vendor that wait for a next request, what the gateway was
// started with, and the event loop's own.
constexpr std::uint64_t kFixedDescriptors = 384;

// What cannot be meant is refused before anything starts, not request by request.
Status check_meaning(const GatewayPolicy& policy) {
  if (policy.vendor != Vendor::none && !is_kind_of(policy.credential_kind, policy.vendor)) {
    return make_error(Code::config, std::string("a credential of the kind ") +
                                        credential_kind_name(policy.credential_kind) + " is none of " +
                                        contract::vendor_name(policy.vendor) + "'s");
  }
  if (policy.max_cost_micros > 0 && !policy.price.has_value()) {
    return make_error(Code::config, "a limit of cost needs a price");
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

Json price_json(const std::optional<ModelPrice>& price) {
  if (!price.has_value()) return nullptr;
  return {{"input", price->input},
          {"output", price->output},
          {"cache_read", price->cache_read},
          {"cache_write", price->cache_write},
          {"cache_write_1h", price->cache_write_1h}};
}

ModelPrice read_price(contract::ObjectReader in) {
  ModelPrice price;
  price.input = in.integer("input", 0, kMaxPrice);
  price.output = in.integer("output", 0, kMaxPrice);
  price.cache_read = in.integer("cache_read", 0, kMaxPrice);
  price.cache_write = in.integer("cache_write", 0, kMaxPrice);
  price.cache_write_1h = in.integer("cache_write_1h", 0, kMaxPrice);
  in.finish();
  return price;
}

Result<GatewayPolicy> decode_policy(std::string_view bytes) {
  TRY(Json json, contract::parse_json(bytes, kMaxSetupBytes));
  contract::JsonFault fault;
  contract::ObjectReader in(json, "$", &fault);
  GatewayPolicy policy;
  policy.vendor = static_cast<Vendor>(in.choice("vendor", {"none", "anthropic", "openai"}));
  auto kind = credential_kind_from_name(in.text("credential_kind", {1, 64}));
  if (!kind.has_value()) in.fail("credential_kind", "is no kind of credential");
  policy.credential_kind = kind.value_or(CredentialKind::anthropic_api_key);
  policy.upstream = in.text("upstream", {0, 512});
  policy.ca_bundle = in.text("ca_bundle", {0, 4096});
  policy.models = in.texts("models", 0, 64, {1, 256});
  policy.vendor_tools = in.texts("vendor_tools", 0, 64, {1, 64});
  policy.max_requests = in.integer("max_requests", 0, kMaxJsonInteger);
  policy.max_tokens = in.integer("max_tokens", policy.vendor == Vendor::none ? 0 : 1, kMaxJsonInteger);
  policy.total_tokens = in.integer("total_tokens", 0, kMaxJsonInteger);
  policy.max_cost_micros = in.integer("max_cost_micros", 0, kMaxJsonInteger);
  policy.max_parallel = in.integer("max_parallel", 0, kMaxJsonInteger);
  policy.max_connections = in.integer("max_connections", 1, kMostConnections);
  policy.deadline_ms = in.integer("deadline_ms", 0, kMaxJsonInteger);
  if (auto price = in.maybe_object("price", contract::Absent::only_null)) policy.price = read_price(*price);
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

// A destination is named once, and keeps the rules of the contract.
Status check_destinations(const TransportPolicy& transport) {
  std::set<std::pair<std::string, std::uint16_t>> seen;
  for (const Destination& destination : transport.destinations) {
    const std::string shown = "the destination \"" + printable(destination.host, 200) + "\"";
    if (auto found = contract::find_problem(destination)) {
      return make_error(Code::config, shown + ": " + found->key + " " + found->problem);
    }
    if (!seen.emplace(destination.host, destination.port).second) {
      return make_error(Code::config, shown + " is named twice with the same port");
    }
  }
  return {};
}

}  // namespace

Result<std::vector<std::string>> hosts_to_resolve(const GatewayPolicy& policy) {
  std::vector<std::string> hosts;
  if (policy.vendor != Vendor::none || !policy.transport.proxy.empty()) {
    TRY(Origin first,
        policy.transport.proxy.empty() ? parse_origin(policy.upstream) : parse_proxy(policy.transport.proxy));
    if (!first.is_literal) hosts.push_back(first.host);
  }
  for (const Destination& destination : policy.transport.destinations) hosts.push_back(destination.host);
  return hosts;
}

std::vector<std::uint16_t> ports_to_reach(const GatewaySetup& setup) {
  std::vector<std::uint16_t> ports;
  if (setup.proxy.has_value()) {
    ports.push_back(setup.proxy->port);
  } else if (setup.policy.vendor != Vendor::none) {
    ports.push_back(setup.origin.port);
  }
  for (const Destination& destination : setup.policy.transport.destinations)
    ports.push_back(destination.port);
  return ports;
}

std::uint64_t descriptors_needed(const GatewayPolicy& policy) {
  return 2 * policy.max_connections + kFixedDescriptors;
}

Result<std::string> encode_setup(const GatewayPolicy& policy) {
  Json json = {{"vendor", contract::vendor_name(policy.vendor)},
               {"credential_kind", credential_kind_name(policy.credential_kind)},
               {"upstream", contract::json_text(policy.upstream, 512)},
               {"ca_bundle", policy.ca_bundle},
               {"models", policy.models},
               {"vendor_tools", policy.vendor_tools},
               {"max_requests", contract::json_count(policy.max_requests)},
               {"max_tokens", contract::json_count(policy.max_tokens)},
               {"total_tokens", contract::json_count(policy.total_tokens)},
               {"max_cost_micros", contract::json_count(policy.max_cost_micros)},
               {"max_parallel", contract::json_count(policy.max_parallel)},
               {"max_connections", contract::json_count(policy.max_connections)},
               {"deadline_ms", contract::json_count(policy.deadline_ms)},
               {"price", price_json(policy.price)},
               {"run_as", nullptr},
               {"transport", encode_transport(policy.transport)}};
  if (policy.run_as.has_value()) json["run_as"] = {{"uid", policy.run_as->uid}, {"gid", policy.run_as->gid}};
  std::string text = contract::canonical(json);
  if (text.size() > kMaxSetupBytes) {
    return make_error(Code::config, "the gateway's policy is too large",
                      "name fewer models and destinations");
  }
  return text;
}

Result<GatewaySetup> decode_setup(std::string_view bytes) {
  GatewaySetup setup;
  TRY(setup.policy, decode_policy(bytes));
  if (setup.policy.vendor != Vendor::none) {
    TRY(setup.origin, parse_origin(setup.policy.upstream));
  }
  if (!setup.policy.transport.proxy.empty()) {
    TRY(setup.proxy, parse_proxy(setup.policy.transport.proxy));
  }
  TRY_VOID(check_meaning(setup.policy));
  TRY_VOID(check_destinations(setup.policy.transport));
  return setup;
}

}  // namespace cofferdam::egress
