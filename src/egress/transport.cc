#include "egress/transport.h"

namespace cofferdam::egress {
namespace {

using contract::Json;
using contract::kMaxJsonInteger;

constexpr std::uint64_t kMaxMs = 24ULL * 3600U * 1000U;

Destination decode_destination(contract::ObjectReader* in) {
  Destination out;
  out.host = in->text("host", {1, 253});
  out.port = static_cast<std::uint16_t>(in->integer("port", 1, 65535));
  out.plain = in->boolean("plain");
  out.addresses = in->texts("addresses", 0, contract::kMaxDestinationRanges, {1, 64});
  out.max_sent = in->integer("max_sent", 0, kMaxJsonInteger);
  out.max_received = in->integer("max_received", 0, kMaxJsonInteger);
  out.credential = in->text("credential", {0, 64});
  out.ca_bundle = in->text("ca_bundle", {0, 4096});
  in->finish();
  return out;
}

}  // namespace

Json encode_transport(const TransportPolicy& policy) {
  Json destinations = Json::array();
  for (const Destination& destination : policy.destinations) {
    destinations.push_back({{"host", destination.host},
                            {"port", destination.port},
                            {"plain", destination.plain},
                            {"addresses", destination.addresses},
                            {"max_sent", contract::json_count(destination.max_sent)},
                            {"max_received", contract::json_count(destination.max_received)},
                            {"credential", destination.credential},
                            {"ca_bundle", destination.ca_bundle}});
  }
  return {{"extra_ca_bundle", policy.extra_ca_bundle},
          {"proxy", policy.proxy},
          {"connect_ms", policy.connect_ms},
          {"handshake_ms", policy.handshake_ms},
          {"head_ms", policy.head_ms},
          {"idle_ms", policy.idle_ms},
          {"keep_ms", policy.keep_ms},
          {"answer_bytes", contract::json_count(policy.answer_bytes)},
          {"destinations", std::move(destinations)}};
}

TransportPolicy decode_transport(contract::ObjectReader in) {
  TransportPolicy out;
  out.extra_ca_bundle = in.text("extra_ca_bundle", {0, 4096});
  out.proxy = in.text("proxy", {0, 512});
  out.connect_ms = in.integer("connect_ms", 1, kMaxMs);
  out.handshake_ms = in.integer("handshake_ms", 1, kMaxMs);
  out.head_ms = in.integer("head_ms", 1, kMaxMs);
  out.idle_ms = in.integer("idle_ms", 1, kMaxMs);
  out.keep_ms = in.integer("keep_ms", 0, kMaxMs);
  out.answer_bytes = in.integer("answer_bytes", 1, kMaxJsonInteger);
  for (contract::ObjectReader& entry : in.objects("destinations", 0, contract::kMaxDestinations)) {
    out.destinations.push_back(decode_destination(&entry));
  }
  in.finish();
  return out;
}

}  // namespace cofferdam::egress
