// A certificate authority that lives as long as the process: made at the start, its key never leaves memory.
#pragma once

#include <memory>
#include <string>

#include <openssl/ssl.h>

#include "base/result.h"

namespace cofferdam::standin {

struct SslContextFree {
  void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
};
using SslContext = std::unique_ptr<SSL_CTX, SslContextFree>;

struct Identity {
  SslContext context;  // server side, with the leaf certificate for 127.0.0.1 and localhost
  std::string ca_pem;  // what a client has to trust
};

Result<Identity> make_identity();

}  // namespace cofferdam::standin
