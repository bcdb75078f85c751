#include "egress/gateway_setup.h"

#include <cstdint>
#include <utility>

#include "contract/json.h"

namespace cofferdam::egress {
namespace {

using contract::Json;
using contract::kMaxJsonInteger;
using contract::kMaxPrice;
using contract::Vendor;

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
  policy.vendor = in.choice("vendor", {"none", "anthropic"}) == 1 ? Vendor::anthropic : Vendor::none;
  policy.upstream = in.text("upstream", {1, 512});
  policy.ca_bundle = in.text("ca_bundle", {0, 4096});
  policy.models = in.texts("models", 0, 64, {1, 256});
  policy.max_requests = in.integer("max_requests", 0, kMaxJsonInteger);
  policy.max_tokens = in.integer("max_tokens", 1, kMaxJsonInteger);
  policy.total_tokens = in.integer("total_tokens", 0, kMaxJsonInteger);
  policy.max_cost_micros = in.integer("max_cost_micros", 0, kMaxJsonInteger);
  policy.max_parallel = in.integer("max_parallel", 0, kMaxJsonInteger);
  if (auto price = in.maybe_object("price", contract::Absent::only_null)) policy.price = read_price(*price);
  if (auto user = in.maybe_object("run_as", contract::Absent::only_null)) {
    UserIds ids;
    ids.uid = static_cast<uid_t>(user->integer("uid", 1, INT32_MAX));
    ids.gid = static_cast<gid_t>(user->integer("gid", 1, INT32_MAX));
    user->finish();
    policy.run_as = ids;
  }
  in.finish();
  if (fault.failed()) return fault.error().with("gateway policy");
  if (policy.max_cost_micros > 0 && !policy.price.has_value()) {
    return make_error(Code::config, "a limit of cost needs a price");
  }
  return policy;
}

}  // namespace

Result<std::string> encode_setup(const GatewayPolicy& policy) {
  Json json = {{"vendor", contract::vendor_name(policy.vendor)},
               {"upstream", contract::json_text(policy.upstream, 512)},
               {"ca_bundle", policy.ca_bundle},
               {"models", policy.models},
               {"max_requests", contract::json_count(policy.max_requests)},
               {"max_tokens", contract::json_count(policy.max_tokens)},
               {"total_tokens", contract::json_count(policy.total_tokens)},
               {"max_cost_micros", contract::json_count(policy.max_cost_micros)},
               {"max_parallel", contract::json_count(policy.max_parallel)},
               {"price", price_json(policy.price)},
               {"run_as", nullptr}};
  if (policy.run_as.has_value()) json["run_as"] = {{"uid", policy.run_as->uid}, {"gid", policy.run_as->gid}};
  std::string text = contract::canonical(json);
  if (text.size() > kMaxSetupBytes) {
    return make_error(Code::config, "the gateway's policy is too large", "name fewer models");
  }
  return text;
}

Result<GatewaySetup> decode_setup(std::string_view bytes) {
  GatewaySetup setup;
  TRY(setup.policy, decode_policy(bytes));
  TRY(setup.origin, parse_origin(setup.policy.upstream));
  return setup;
}

}  // namespace cofferdam::egress
