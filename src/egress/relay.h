// One allowed request: sent to the vendor as we write it, its answer streamed back as it arrives.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "egress/capture.h"
#include "egress/credential.h"
#include "egress/gateway_setup.h"
#include "egress/http_head.h"
#include "egress/upstream.h"
#include "egress/usage_scanner.h"

namespace cofferdam::egress {

struct RelayRequest {
  std::string target;
  std::vector<HeaderField> fields;  // what the vendor may see of the box's
  std::string body;                 // released once it has been sent
  bool keep_alive = true;           // whether the box may go on using its connection
  std::function<void()> sent;       // called when the body has been released
  std::shared_ptr<const VendorCredential> credential;
  CapturedBody* answer = nullptr;  // gets the answer's bytes too; may be null
};

struct Exchange {
  int status = 0;         // of the vendor's answer, once its head has been passed on
  bool complete = false;  // the whole answer has been passed on
  VendorFailure failure = VendorFailure::none;
  std::uint64_t response_bytes = 0;
  TokenUsage usage;
  bool usage_is_final = false;
  bool asked = false;       // the question has gone out, so it may be charged for
  std::string retry_after;  // as the vendor said it; empty: it did not
};

// `client` is written to only after the vendor's answer has begun; before that, every failure is left to the
// caller to answer. Whoever holds `call` may cancel it meanwhile.
boost::asio::awaitable<Exchange> relay(boost::beast::tcp_stream* client, Upstream* upstream,
                                       const GatewaySetup* setup, RelayRequest* request, Call* call);

}  // namespace cofferdam::egress
