// Real broker processes before a token endpoint of the test's own, whose refresh tokens work once.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "base/file.h"
#include "contract/config.h"
#include "egress/broker.h"
#include "unit/egress/tls_vendor.h"

namespace cofferdam::egress::testing {

// Whatever is a secret in these tests has this in it.
inline constexpr const char* kMark = "S3CR3T";

class BrokerTest : public ::testing::Test {
 protected:
  void SetUp() override;
  // An endpoint that takes refresh token "S3CR3T-r1", then "S3CR3T-r2" and so on, and answers each with
  // access token "S3CR3T-a2", ... `before` runs ahead of every answer, while the broker waits.
  void start_endpoint(std::function<void()> before = {});
  // A login of Claude's whose token ends in so many milliseconds.
  void write_login(const std::string& access, const std::string& refresh, std::int64_t ends_in_ms) const;
  std::string login_path() const { return dir_->path() + "/credentials.json"; }
  std::string lock_path() const { return login_path() + ".cofferdam.lock"; }
  std::string login_text() const;

  // A broker for vendor_, with what the environment is said to hold.
  Result<Broker> start(const std::string& variable = {}, const std::string& value = {});
  // The next grant on `socket`, waited for.
  static Grant next_grant(int socket);
  static std::string token_of(const Grant& grant);
  static void expect_no_secret(const std::string& text);

  std::optional<TempDir> dir_;
  contract::VendorConfig vendor_;
  std::optional<Certificate> certificate_;
  std::unique_ptr<TlsVendor> endpoint_;

 private:
  std::string answer(const std::string& body);
  std::mutex mutex_;
  int generation_ = 1;
};

}  // namespace cofferdam::egress::testing
