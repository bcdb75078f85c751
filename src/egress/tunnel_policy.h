// The allow-list mode's decisions: pure functions over the attempt's destinations. Empty means nobody.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "egress/client_hello.h"
#include "egress/http_head.h"
#include "egress/transport.h"

namespace cofferdam::egress {

struct TunnelDecision {
  const Destination* destination = nullptr;  // null: denied
  std::string rule;
  int status = 403;
  std::string target = {};  // origin-form, for what the box says in plain HTTP
  // As asked for, when it could be read at all.
  std::string host = {};
  std::uint16_t port = 0;
};

// `head` was parsed with TargetForm::proxy: CONNECT host:port, or GET and HEAD of http://host[:port]/path for
// destinations that are marked plain or have a credential.
TunnelDecision decide_tunnel(const std::vector<Destination>& destinations, const RequestHead& head);

// What the client then says must be TLS for the very host that it asked for. An empty rule: go on.
std::string judge_hello(const Destination& destination, const ClientHello& hello);

}  // namespace cofferdam::egress
