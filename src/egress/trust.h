// Whom the gateway believes: certificates read into memory before it gives up its right to open files.
#pragma once

#include <openssl/ssl.h>

#include <string>

#include "base/result.h"

namespace cofferdam::egress {

// `ca_bundle` replaces the system's certificates when it is not empty; `extra_ca_bundle` is added to either.
// Code::config when one of them cannot be read or holds no certificate. Sets verification and TLS >= 1.2 too.
Status prepare_trust(SSL_CTX* context, const std::string& ca_bundle, const std::string& extra_ca_bundle);

// SNI, and the name that the certificate must be for; no partial wildcards. False: it could not be set.
bool expect_host(SSL* connection, std::string host);

}  // namespace cofferdam::egress
