#include "contract/destination.h"

#include <fmt/core.h>

#include "base/text.h"
#include "contract/network.h"

namespace cofferdam::contract {
namespace {

constexpr const char* kHostProblem = "must be a host name in lower case; an address cannot be named";

bool is_byte_bound(std::uint64_t bytes) {
  return bytes >= 1 && bytes <= kMaxDestinationBytes;
}

}  // namespace

bool is_destination_name(std::string_view text) {
  constexpr std::string_view kAllowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
  return !text.empty() && text.size() <= 64 && text.find_first_not_of(kAllowed) == std::string_view::npos;
}

std::optional<DestinationProblem> find_problem(const Destination& destination) {
  const std::string bytes = fmt::format("must be an integer from 1 to {}", kMaxDestinationBytes);
  if (!is_host_name(destination.host)) return DestinationProblem{"host", kHostProblem};
  if (destination.port == 0) return DestinationProblem{"port", "must be an integer from 1 to 65535"};
  if (destination.addresses.size() > kMaxDestinationRanges) {
    return DestinationProblem{"addresses",
                              fmt::format("must have at most {} entries", kMaxDestinationRanges)};
  }
  for (const std::string& range : destination.addresses) {
    if (parse_range(range).has_value()) continue;
    return DestinationProblem{"addresses",
                              "must hold ranges such as 10.0.0.0/8, no bits set behind the prefix"};
  }
  if (!is_byte_bound(destination.max_sent)) return DestinationProblem{"max_sent", bytes};
  if (!is_byte_bound(destination.max_received)) return DestinationProblem{"max_received", bytes};
  if (destination.credential.empty()) return std::nullopt;
  if (!is_destination_name(destination.credential)) {
    return DestinationProblem{"credential", "must be 1 to 64 of A-Z, a-z, 0-9 and . _ -"};
  }
  if (destination.plain) return DestinationProblem{"credential", "would be sent without TLS"};
  return std::nullopt;
}

Result<Destination> parse_destination(std::string_view text) {
  Destination out;
  const std::size_t colon = text.find(':');
  out.host = std::string(text.substr(0, colon));
  for (char& c : out.host) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  const auto port = colon == std::string_view::npos ? out.port : parse_port(text.substr(colon + 1));
  if (is_host_name(out.host) && port.has_value()) {
    out.port = *port;
    return out;
  }
  return make_error(Code::usage, fmt::format("\"{}\" is not HOST or HOST:PORT", printable(text, 300)),
                    "name a host by its name, without scheme and path; an address cannot be named");
}

}  // namespace cofferdam::contract
