// The part of the gateway's policy that says how the outside is reached.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "contract/json.h"

namespace cofferdam::egress {

struct TransportPolicy {
  std::uint64_t head_ms = 600'000;            // until the head of an answer is there
  std::uint64_t idle_ms = 600'000;            // silence inside an answer, of either side
  std::uint64_t answer_bytes = 64ULL << 20U;  // of one answer's body; more ends the attempt
  bool operator==(const TransportPolicy&) const = default;
};
contract::Json encode_transport(const TransportPolicy& policy);
TransportPolicy decode_transport(contract::ObjectReader in);

}  // namespace cofferdam::egress
