#include "egress/transport.h"

namespace cofferdam::egress {
namespace {

using contract::Json;
using contract::kMaxJsonInteger;

constexpr std::uint64_t kMaxMs = 24ULL * 3600U * 1000U;

}  // namespace

Json encode_transport(const TransportPolicy& policy) {
  return {{"head_ms", policy.head_ms},
          {"idle_ms", policy.idle_ms},
          {"answer_bytes", contract::json_count(policy.answer_bytes)}};
}

TransportPolicy decode_transport(contract::ObjectReader in) {
  TransportPolicy out;
  out.head_ms = in.integer("head_ms", 1, kMaxMs);
  out.idle_ms = in.integer("idle_ms", 1, kMaxMs);
  out.answer_bytes = in.integer("answer_bytes", 1, kMaxJsonInteger);
  in.finish();
  return out;
}

}  // namespace cofferdam::egress
