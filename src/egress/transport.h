// The part of the gateway's policy that says how the outside is reached.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "contract/json.h"

namespace cofferdam::egress {

// One destination of the allow-list mode: an exact host and port that programs in the box may reach.
struct Destination {
  std::string host;  // a name in lower case, never an address
  std::uint16_t port = 443;
  bool plain = false;                     // plain HTTP instead of a tunnel for TLS
  std::vector<std::string> addresses;     // CIDR ranges that it must lie in; empty: global addresses only
  std::uint64_t max_sent = 64ULL << 20U;  // bytes from the box, in the whole attempt
  std::uint64_t max_received = 4096ULL << 20U;  // bytes to the box
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
