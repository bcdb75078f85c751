#include "unit/egress/broker_fixture.h"

#include <utility>

#include "base/clock.h"
#include "base/io.h"
#include "contract/json.h"

namespace cofferdam::egress::testing {

using contract::Json;

void BrokerTest::SetUp() {
  auto dir = TempDir::create("/tmp", "broker-test-");
  ASSERT_TRUE(dir);
  dir_ = std::move(*dir);
  vendor_.upstream = "https://127.0.0.1";
  vendor_.credential_env = "ANTHROPIC_API_KEY";
  vendor_.credential_file = login_path();
}

std::string BrokerTest::answer(const std::string& body) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const std::string mark = std::string(kMark) + "-";
  auto json = contract::parse_json(body, 65536);
  if (!json || json->value("refresh_token", "") != mark + "r" + std::to_string(generation_)) {
    const std::string refusal = R"({"error":"invalid_grant","error_description":"S3CR3T"})";
    return "HTTP/1.1 400 Bad Request\r\nContent-Length: " + std::to_string(refusal.size()) + "\r\n\r\n" +
           refusal;
  }
  const std::string next = std::to_string(++generation_);
  return json_answer(contract::canonical(Json{
      {"access_token", mark + "a" + next}, {"refresh_token", mark + "r" + next}, {"expires_in", 28'800}}));
}

void BrokerTest::start_endpoint(std::function<void()> before) {
  certificate_.emplace("IP:127.0.0.1");
  endpoint_ = std::make_unique<TlsVendor>(
      *certificate_, [this, before = std::move(before)](const VendorRequest& request, VendorConnection* out) {
        if (before) before();
        out->write(answer(request.body));
      });
  vendor_.credential = contract::CredentialSource::file;
  vendor_.token_url = "https://127.0.0.1:" + std::to_string(endpoint_->port()) + "/v1/oauth/token";
  vendor_.ca_bundle = dir_->path() + "/ca.pem";
  ASSERT_TRUE(write_file_atomic(vendor_.ca_bundle, certificate_->pem()));
}

void BrokerTest::write_login(const std::string& access, const std::string& refresh,
                             std::int64_t ends_in_ms) const {
  const Json login = {{"claudeAiOauth",
                       {{"accessToken", access},
                        {"refreshToken", refresh},
                        {"expiresAt", now().ms + ends_in_ms},
                        {"subscriptionType", "max"}}}};
  ASSERT_TRUE(write_file_atomic(login_path(), contract::canonical(login)));
}

std::string BrokerTest::login_text() const {
  auto text = read_file(login_path(), 65536);
  return text ? *text : "";
}

Result<Broker> BrokerTest::start(const std::string& variable, const std::string& value) {
  TRY(std::string self, real_path("/proc/self/exe"));
  TRY(BrokerSetup setup,
      plan_broker(vendor_, LoginShape::claude, [&](const std::string& name) -> std::optional<Secret> {
        if (name != variable) return std::nullopt;
        return Secret(value);
      }));
  return Broker::start(self, std::move(setup));
}

Grant BrokerTest::next_grant(int socket) {
  auto readable = wait_readable(socket, 30'000);
  EXPECT_TRUE(readable && *readable) << "no grant";
  if (!readable || !*readable) return {};
  auto message = receive_message(socket, kMaxGrantBytes);
  EXPECT_TRUE(message && !message->closed);
  if (!message) return {};
  auto grant = decode_grant(message->bytes);
  EXPECT_TRUE(grant);
  return grant ? *std::move(grant) : Grant();
}

std::string BrokerTest::token_of(const Grant& grant) {
  return grant.credential.has_value() ? std::string(grant.credential->token.view()) : "";
}

void BrokerTest::expect_no_secret(const std::string& text) {
  EXPECT_EQ(text.find(kMark), std::string::npos) << text;
}

}  // namespace cofferdam::egress::testing
