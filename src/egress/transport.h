// The part of the gateway's policy that says how the outside is reached.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "contract/destination.h"
#include "contract/json.h"

namespace cofferdam::egress {

// One destination of the allow-list mode: what the invocation says of it, and of the configuration what the
// gateway needs to speak TLS itself.
struct Destination : contract::Destination {
  std::string ca_bundle = {};  // PEM file, only with a credential; empty: the system's
  bool operator==(const Destination&) const = default;
};

struct TransportPolicy {
  std::string extra_ca_bundle;       // PEM file, trusted beside the system's certificates
  std::string proxy;                 // http://host:port, asked to CONNECT; empty: direct
  std::uint64_t connect_ms = 5'000;  // for each address
  std::uint64_t handshake_ms = 15'000;
  std::uint64_t head_ms = 600'000;  // until the head of an answer is there
  std::uint64_t idle_ms = 600'000;  // silence inside an answer, of either side
  std::uint64_t keep_ms = 30'000;   // an unused connection to the vendor is kept this long; 0: not at all
  std::uint64_t answer_bytes = 64ULL << 20U;  // of one answer's body; more ends the attempt
  std::vector<Destination> destinations;
  bool operator==(const TransportPolicy&) const = default;
};
contract::Json encode_transport(const TransportPolicy& policy);
TransportPolicy decode_transport(contract::ObjectReader in);

}  // namespace cofferdam::egress
