// Bodies on disk: only when a file is handed over, and never with the credential in it.
#include "egress/capture.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include "base/fd.h"
#include "base/file.h"
#include "contract/json.h"
#include "unit/egress/gateway_fixture.h"

namespace cofferdam::egress::testing {
namespace {

using contract::Json;

Json line_of(const CapturedExchange& exchange, const std::vector<std::string_view>& secrets) {
  auto json = contract::parse_json_lenient(encode_capture({}, exchange, secrets), 64U << 20U, 64);
  EXPECT_TRUE(json.has_value());
  return json ? *std::move(json) : Json();
}

TEST(Capture, CredentialsAreTakenOutAlsoWhereTheyAreEscaped) {
  CapturedExchange exchange;
  exchange.request.add("{\"a\":\"tok\\\"en\",\"b\":\"acc\"}");
  exchange.answer.add("tok");
  exchange.answer.add("\"en and tok\"en");
  const Json line = line_of(exchange, {"tok\"en", "acc", ""});
  EXPECT_EQ(line["request"], "{\"a\":\"[credential]\",\"b\":\"[credential]\"}");
  EXPECT_EQ(line["answer"], "[credential] and [credential]");
  EXPECT_EQ(line["answer_bytes"], 17U);
  EXPECT_EQ(line_of(exchange, {})["answer"], "tok\"en and tok\"en");  // the control
}

TEST(Capture, ABodyIsCutAndACredentialAcrossTheCutIsStillFound) {
  CapturedExchange exchange;
  exchange.request.add(std::string(kMaxCapturedBody - 3, 'x') + "secret");
  exchange.request.add(std::string(kMaxCapturedBody, 'y'));
  const Json line = line_of(exchange, {"secret"});
  const auto shown = line["request"].get<std::string>();
  EXPECT_EQ(shown.size(), kMaxCapturedBody);
  EXPECT_EQ(shown.substr(kMaxCapturedBody - 4), "x[cr");
  EXPECT_EQ(line["request_bytes"], 2 * kMaxCapturedBody + 3);
}

class CaptureTest : public GatewayTest {
 protected:
  // A gateway that captures into `path_`, and one request to a vendor that answers with the credential.
  void ask_an_echo() {
    start_vendor([](const VendorRequest& request, VendorConnection* out) {
      const std::size_t at = request.head.find("x-api-key: ") + 11;
      const std::string key = request.head.substr(at, request.head.find("\r\n", at) - at);
      out->write(json_answer("{\"you sent\":\"" + key + "\"}"));
    });
    path_ = dir_->path() + "/bodies.ndjson";
    auto file = open_file(path_, O_WRONLY | O_CREAT | O_EXCL | O_APPEND);
    ASSERT_TRUE(file.has_value());
    UniqueFd listener = listen_on_loopback(&port_);
    auto self = real_path("/proc/self/exe");
    GatewayEnds ends;
    ends.broker = broker_end();
    ends.listener = std::move(listener);
    ends.capture = std::move(*file);
    auto gateway = Gateway::start(*self, policy_, std::move(ends));
    ASSERT_TRUE(gateway.has_value()) << gateway.error().line();
    gateway_.emplace(std::move(*gateway));
    BoxClient box = client();
    box.send(post("/v1/messages", kAllowedBody));
    EXPECT_EQ(status_of(box.read_answer()), 200);
    (void)next_event();
    BoxClient denied = client();
    denied.send(post("/v1/messages", R"({"model":"claude-test-1","max_tokens":1,"messages":[],"secret":1})"));
    EXPECT_EQ(status_of(denied.read_answer()), 403);
    (void)next_event();
  }
  std::string path_;
};

TEST_F(CaptureTest, TheGatewayWritesWhatPassedAndWhatItDenied) {
  ask_an_echo();
  auto text = read_file(path_, 1U << 20U);
  ASSERT_TRUE(text.has_value());
  expect_no_secret(*text);
  const std::size_t end = text->find('\n');
  ASSERT_NE(end, std::string::npos);
  auto first = contract::parse_json_lenient(text->substr(0, end), 1U << 20U, 64);
  auto second = contract::parse_json_lenient(text->substr(end + 1), 1U << 20U, 64);
  ASSERT_TRUE(first.has_value() && second.has_value());
  EXPECT_EQ((*first)["answer"], "{\"you sent\":\"[credential]\"}");
  EXPECT_NE((*first)["request"].get<std::string>().find("hello"), std::string::npos);
  EXPECT_EQ((*second)["denied"], true);
  EXPECT_NE((*second)["request"].get<std::string>().find("\"secret\":1"), std::string::npos);
  EXPECT_NE((*second)["answer"].get<std::string>().find("$.secret"), std::string::npos);
}

}  // namespace
}  // namespace cofferdam::egress::testing
