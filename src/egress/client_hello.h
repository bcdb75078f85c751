// The first message of TLS, as far as a tunnel has to look into it: whom the client is asking for. Pure and
// bounded; bytes in, values out.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace cofferdam::egress {

inline constexpr std::size_t kMaxHelloBytes = 16U << 10U;

struct ClientHello {
  enum class State {
    more,  // what is there is a beginning of one
    bad,   // not a ClientHello, or one that two parsers could read differently
    done,
  };
  State state = State::bad;
  std::optional<std::string> server_name;  // as sent
  bool encrypted = false;                  // ECH or its draft: the true name is hidden
};

// `bytes` is everything that the client has sent so far; what stands behind the message is not looked at.
ClientHello read_client_hello(std::string_view bytes);

}  // namespace cofferdam::egress
