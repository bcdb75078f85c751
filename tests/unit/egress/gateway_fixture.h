// A real gateway process between a client and a TLS vendor of the test's own.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/file.h"
#include "egress/credential.h"
#include "egress/gateway.h"
#include "unit/egress/box_client.h"
#include "unit/egress/tls_vendor.h"

namespace cofferdam::egress::testing {

inline constexpr const char* kCredential = "sk-real-4f1c9a7be2d84c63";
inline constexpr const char* kPlaceholder = "sk-placeholder-000000000000";
inline constexpr const char* kModel = "claude-test-1";
inline constexpr const char* kAllowedBody =
    R"({"model":"claude-test-1","max_tokens":100,"messages":[{"role":"user","content":"hello"}]})";

class GatewayTest : public ::testing::Test {
 protected:
  void SetUp() override;
  // The vendor, by default with a certificate for 127.0.0.1 and localhost.
  void start_vendor(TlsVendor::Handler handler, const std::string& names = "IP:127.0.0.1,DNS:localhost");
  // A gateway for policy_; fails the test if it does not start.
  void start_gateway();
  Result<Gateway> try_gateway();
  // A socket whose other end is broker_, the credential in it.
  UniqueFd broker_end();
  // This program under another name, in dir_; what the name means, probes.h says.
  std::string named_program(const std::string& name) const;
  // From now on names are answered from these lines (scripted_resolver.h).
  void script_resolver(const std::string& answers);
  BoxClient client() const { return BoxClient(port_); }
  // The next event, waited for. Every line ever read is kept in lines_.
  GatewayEvent next_event();
  void expect_no_secret(const std::string& text) const;

  std::optional<TempDir> dir_;
  std::optional<Certificate> certificate_;
  GatewayPolicy policy_;
  std::string program_;  // empty: this one
  std::unique_ptr<TlsVendor> vendor_;
  VendorCredential credential_;  // what the gateway is given at its start
  UniqueFd broker_;              // this end of its socket to the broker, which the test plays
  std::optional<Gateway> gateway_;
  std::uint16_t port_ = 0;
  std::string lines_;
  std::string unread_;
};

}  // namespace cofferdam::egress::testing
