// What a program in the box can do on the listener: send any bytes and look at what comes back.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/fd.h"

namespace cofferdam::egress::testing {

// All waits are for a condition, with a bound that only a failure reaches.
class BoxClient {
 public:
  explicit BoxClient(std::uint16_t port);
  void send(std::string_view bytes);
  // Everything received, up to and including the first `mark` from the current position; "" if it never came.
  std::string read_until(std::string_view mark);
  // One answer with content-length or chunked coding, head and decoded or raw body as sent.
  std::string read_answer();
  // Everything up to the end of the connection; sets closed().
  std::string read_to_end();
  bool closed() const { return closed_; }
  int descriptor() const { return fd_.get(); }  // for a TLS client on top
  void hang_up() { fd_.reset(); }

 private:
  bool receive();
  UniqueFd fd_;
  std::string pending_;
  bool closed_ = false;
};

int status_of(const std::string& answer);
// The status line's and fields' part, in lower case.
std::string head_of(const std::string& answer);
std::string body_of(const std::string& answer);

std::string post(std::string_view target, std::string_view body, std::string_view more_fields = {});

}  // namespace cofferdam::egress::testing
