// Why there is no (good) answer from outside. failure_name() is what the box and the account are told.
#pragma once

namespace cofferdam::egress {

enum class VendorFailure {
  none,
  unreachable,  // no address, no connection, no handshake in time
  address,      // the name points to an address that is not allowed
  proxy,        // the upstream proxy did not open the way
  tls,          // no verified session
  reset,        // connection lost before the head of the answer was complete
  timeout,      // no head of an answer in time
  protocol,     // not an HTTP answer that we accept
  redirect,     // never followed
  too_large,
  cancelled,  // the box went away
};
const char* failure_name(VendorFailure failure);

}  // namespace cofferdam::egress
