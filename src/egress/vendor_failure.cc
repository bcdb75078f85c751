#include "egress/vendor_failure.h"

namespace cofferdam::egress {

const char* failure_name(VendorFailure failure) {
  switch (failure) {
    case VendorFailure::none:
      return "none";
    case VendorFailure::unreachable:
      return "vendor-unreachable";
    case VendorFailure::address:
      return "vendor-address";
    case VendorFailure::proxy:
      return "vendor-proxy";
    case VendorFailure::tls:
      return "vendor-tls";
    case VendorFailure::reset:
      return "vendor-reset";
    case VendorFailure::timeout:
      return "vendor-timeout";
    case VendorFailure::protocol:
      return "vendor-protocol";
    case VendorFailure::redirect:
      return "redirect";
    case VendorFailure::too_large:
      return "vendor-too-large";
    case VendorFailure::cancelled:
      break;
  }
  return "client-gone";
}

}  // namespace cofferdam::egress
