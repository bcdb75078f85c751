// Names become addresses in a process of their own: the gateway has no files and no threads for it, and what
// looks names up never sees a byte from the box. Between them is a SOCK_SEQPACKET socket, one JSON object per
// message. The first message comes from the supervisor and names every host that may ever be asked for.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/process.h"
#include "base/result.h"

namespace cofferdam::egress {

inline constexpr std::size_t kMaxResolverMessage = 16U << 10U;
inline constexpr std::size_t kMaxAddresses = 8;  // of one name; the rest is not tried

struct ResolverSetup {
  std::vector<std::string> hosts;
  std::optional<UserIds> run_as;
};
std::string encode_resolver_setup(const ResolverSetup& setup);
Result<ResolverSetup> decode_resolver_setup(std::string_view message);

struct ResolverQuery {
  std::uint64_t id = 0;
  std::string host;
};
std::string encode_resolver_query(const ResolverQuery& query);
Result<ResolverQuery> decode_resolver_query(std::string_view message);

// No address: it could not be looked up, or is not on the list.
struct ResolverAnswer {
  std::uint64_t id = 0;
  std::vector<std::string> addresses;  // numeric, in the order in which to try them
};
std::string encode_resolver_answer(const ResolverAnswer& answer);
Result<ResolverAnswer> decode_resolver_answer(std::string_view message);

// getaddrinfo(3), families taking turns so that one that is not routed costs one attempt and not all.
std::vector<std::string> look_up(const std::string& host);

// Body of `cofferdam internal-resolver`: the socket is descriptor 3. Returns at its end.
int resolver_main();

}  // namespace cofferdam::egress
