// Where a credential comes from, seen from the broker's loop.
#pragma once

#include <memory>
#include <optional>

#include "base/result.h"
#include "egress/broker_setup.h"
#include "egress/credential.h"

namespace cofferdam::egress {

class BrokerSource {
 public:
  explicit BrokerSource(BrokerSetup setup) : setup_(std::move(setup)) {}
  // The credential to be used from now on, numbered one up. `rejected`: the vendor does not take the last
  // one. Errors hold no secret.
  Result<const VendorCredential*> next(bool rejected);

 private:
  Result<VendorCredential> fetch(bool rejected);
  Result<VendorCredential> from_login(bool rejected);
  Result<Secret> from_command() const;

  BrokerSetup setup_;
  std::optional<VendorCredential> last_;
};

}  // namespace cofferdam::egress
