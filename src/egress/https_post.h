// One POST to a token endpoint, over a verified session. For the broker.
#pragma once

#include <string>

#include "base/result.h"
#include "egress/secret.h"

namespace cofferdam::egress {

struct PostAnswer {
  int status = 0;
  Secret body;
};

// How a token endpoint is reached: as the vendor is.
struct PostWay {
  std::string ca_bundle;
  std::string extra_ca_bundle;
  std::string proxy;
};

// `url`: https://host[:port]/path. JSON there and back. Certificate and name are always verified, addresses
// are checked as those of the vendor are, redirects are answers like any other. Everything within 30 seconds.
Result<PostAnswer> https_post(const std::string& url, const PostWay& way, const Secret& body);

}  // namespace cofferdam::egress
