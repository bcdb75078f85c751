#include "unit/egress/gateway_fixture.h"

#include <unistd.h>

#include <cerrno>
#include <utility>

#include "base/io.h"

namespace cofferdam::egress::testing {

void GatewayTest::SetUp() {
  auto dir = TempDir::create("/tmp", "egress-test-");
  ASSERT_TRUE(dir.has_value());
  dir_ = std::move(*dir);
  policy_.vendor = contract::Vendor::anthropic;
  policy_.models = {kModel};
  policy_.max_requests = 100;
  policy_.max_tokens = 1000;
  credential_.token = Secret(kCredential);
  credential_.seq = 1;
}

void GatewayTest::start_vendor(TlsVendor::Handler handler, const std::string& names) {
  certificate_.emplace(names);
  vendor_ = std::make_unique<TlsVendor>(*certificate_, std::move(handler));
  policy_.upstream = "https://127.0.0.1:" + std::to_string(vendor_->port());
  policy_.ca_bundle = dir_->path() + "/ca.pem";
  ASSERT_TRUE(write_file_atomic(policy_.ca_bundle, certificate_->pem()).has_value());
}

Result<Gateway> GatewayTest::try_gateway() {
  UniqueFd listener = listen_on_loopback(&port_);
  TRY(std::string self, real_path("/proc/self/exe"));
  return Gateway::start(program_.empty() ? self : program_, policy_,
                        GatewayEnds{broker_end(), std::move(listener)});
}

UniqueFd GatewayTest::broker_end() {
  auto sockets = make_seqpacket_pair();
  EXPECT_TRUE(sockets.has_value());
  credential_.kind = policy_.credential_kind;
  EXPECT_TRUE(send_message(sockets->ours.get(), encode_grant(credential_).view()).has_value());
  broker_ = std::move(sockets->ours);
  return std::move(sockets->theirs);
}

std::string GatewayTest::named_program(const std::string& name) const {
  std::string path = dir_->path() + "/" + name;
  auto self = real_path("/proc/self/exe");
  const bool linked = self && (::symlink(self->c_str(), path.c_str()) == 0 || errno == EEXIST);
  EXPECT_TRUE(linked) << path;
  return path;
}

void GatewayTest::script_resolver(const std::string& answers) {
  ASSERT_TRUE(write_file_atomic(dir_->path() + "/answers", answers).has_value());
  program_ = named_program("scripted");
}

void GatewayTest::start_gateway() {
  auto gateway = try_gateway();
  ASSERT_TRUE(gateway.has_value()) << gateway.error().line();
  gateway_.emplace(std::move(*gateway));
}

GatewayEvent GatewayTest::next_event() {
  while (unread_.find('\n') == std::string::npos) {
    auto readable = wait_readable(gateway_->events_fd(), 20'000);
    bool would_block = false;
    auto bytes = readable && *readable ? read_some(gateway_->events_fd(), 4096, &would_block) : std::string();
    if (!bytes || bytes->empty()) {
      ADD_FAILURE() << "no event";
      return {};
    }
    unread_ += *bytes;
  }
  std::string line = unread_.substr(0, unread_.find('\n'));
  unread_.erase(0, line.size() + 1);
  lines_ += line + "\n";
  expect_no_secret(line);
  auto event = decode_gateway_event(line);
  EXPECT_TRUE(event.has_value()) << line;
  return event ? *event : GatewayEvent();
}

void GatewayTest::expect_no_secret(const std::string& text) const {
  EXPECT_EQ(text.find(kCredential), std::string::npos) << text;
}

}  // namespace cofferdam::egress::testing
