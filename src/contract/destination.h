// What the allow-list mode opens: one exact host and port beside the vendor. None by default.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace cofferdam::contract {

inline constexpr std::size_t kMaxDestinations = 64;
inline constexpr std::size_t kMaxDestinationRanges = 16;
inline constexpr std::size_t kMaxDestinationCredentials = 8;  // each has a broker of its own
inline constexpr std::uint64_t kMaxDestinationBytes = 1ULL << 40U;

struct Destination {
  std::string host;  // a name in lower case, never an address
  std::uint16_t port = 443;
  bool plain = false;                       // plain HTTP instead of a tunnel for TLS
  std::vector<std::string> addresses = {};  // CIDR ranges that it must lie in; empty: global addresses only
  std::uint64_t max_sent = 64ULL << 20U;    // bytes from the box, in the whole attempt
  std::uint64_t max_received = 4096ULL << 20U;  // bytes to the box
  // Name of a configured destination, for this very host and port, whose credential the gateway sets; empty:
  // none. TLS is then the gateway's, and the box asks in plain HTTP.
  std::string credential = {};
  bool operator==(const Destination&) const = default;
  bool is_at(const Destination& other) const { return host == other.host && port == other.port; }
};

// 1..64 of [A-Za-z0-9._-].
bool is_destination_name(std::string_view text);

// The first key that breaks a rule, and what is wrong with it.
struct DestinationProblem {
  std::string key;
  std::string problem;
};
std::optional<DestinationProblem> find_problem(const Destination& destination);

// "HOST" or "HOST:PORT", upper case taken for lower; everything else as by default. Code::usage for anything
// but a name, so also for an address in whichever spelling.
Result<Destination> parse_destination(std::string_view text);

}  // namespace cofferdam::contract
