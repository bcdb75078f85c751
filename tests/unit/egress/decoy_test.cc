// attacks.md G1: the vendor is a way out. The vendor here does what a real one might: it fetches every URL
// that it finds in a body. Sent to it directly, each body below is a hit on the decoy; through the gateway
// none is.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <memory>
#include <thread>

#include "unit/egress/gateway_fixture.h"

namespace cofferdam::egress {
namespace {

using testing::body_of;
using testing::BoxClient;
using testing::GatewayTest;
using testing::json_answer;
using testing::post;
using testing::status_of;
using testing::VendorConnection;
using testing::VendorRequest;

// What a field would be made to fetch. Counts connections; answers nothing.
class Decoy {
 public:
  Decoy() : listener_(testing::listen_on_loopback(&port_)), thread_([this] { accept_all(); }) {}
  Decoy(const Decoy&) = delete;
  Decoy& operator=(const Decoy&) = delete;
  ~Decoy() {
    ::shutdown(listener_.get(), SHUT_RDWR);
    thread_.join();
  }
  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_) + "/secret"; }
  std::size_t hits() const { return hits_; }

 private:
  void accept_all() {
    while (true) {
      UniqueFd one(::accept(listener_.get(), nullptr, nullptr));
      if (one.get() < 0) return;
      ++hits_;  // before the close that the fetcher waits for
    }
  }
  std::uint16_t port_ = 0;
  std::atomic<std::size_t> hits_{0};
  UniqueFd listener_;
  std::thread thread_;
};

UniqueFd connect_to(std::uint16_t port) {
  UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) fd.reset();
  return fd;
}

// The vendor's doing: every "http://127.0.0.1:PORT" of the body is visited, to its end.
void fetch_urls(const std::string& body) {
  constexpr std::string_view kMark = "http://127.0.0.1:";
  for (std::size_t at = body.find(kMark); at != std::string::npos; at = body.find(kMark, at + 1)) {
    UniqueFd fd = connect_to(static_cast<std::uint16_t>(std::atoi(body.c_str() + at + kMark.size())));
    char byte = 0;
    while (fd.get() >= 0 && ::read(fd.get(), &byte, 1) > 0) continue;
  }
}

void fetching_vendor(const VendorRequest& request, VendorConnection* connection) {
  fetch_urls(request.body);
  connection->write(json_answer(R"({"ok":true})"));
}

// The control: straight to the vendor, by nobody's leave.
std::string ask_directly(std::uint16_t port, const std::string& request) {
  std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context(SSL_CTX_new(TLS_client_method()), &SSL_CTX_free);
  std::unique_ptr<SSL, decltype(&SSL_free)> ssl(SSL_new(context.get()), &SSL_free);
  UniqueFd fd = connect_to(port);
  SSL_set_fd(ssl.get(), fd.get());
  if (SSL_connect(ssl.get()) != 1) return {};
  SSL_write(ssl.get(), request.data(), static_cast<int>(request.size()));
  std::string answer(4096, '\0');
  int n = SSL_read(ssl.get(), answer.data(), static_cast<int>(answer.size()));
  answer.resize(n > 0 ? static_cast<std::size_t>(n) : 0);
  return answer;
}

std::string with_url(std::string text, const std::string& url) {
  const std::string mark = "URL";
  for (std::size_t at = text.find(mark); at != std::string::npos; at = text.find(mark)) {
    text.replace(at, mark.size(), url);
  }
  return text;
}

// Every field by which a vendor could be made to fetch; each has URL once.
constexpr const char* kAnthropic[] = {
    R"("tools":[{"type":"web_fetch_20250910","name":"web_fetch","allowed_domains":["URL"]}])",
    R"("tools":[{"type":"web_search_20250305","name":"web_search","allowed_domains":["URL"]}])",
    R"("tools":[{"type":"code_execution_20250825","name":"curl URL"}])",
    R"("tools":[{"type":"computer_20250124","name":"URL"}])",
    R"("tools":[{"type":"mcp_toolset","mcp_server_name":"URL"}])",
    R"("tools":[{"name":"a","input_schema":{"$ref":"URL"}}])",
    R"("tools":[{"name":"a","callback_url":"URL"}])",
    R"("mcp_servers":[{"type":"url","name":"a","url":"URL"}])",
    R"("container":{"skills":[{"type":"custom","skill_id":"URL"}]})",
    R"("webhook":"URL")",
    R"("metadata":{"user_id":"u","callback":"URL"})",
    R"("output_config":{"format":{"type":"json_schema","schema":{"$ref":"URL"}}})",
    R"("system":[{"type":"document","source":{"type":"url","url":"URL"}}])",
    R"("messages":[{"role":"user","content":[{"type":"image","source":{"type":"url","url":"URL"}}]}])",
    R"("messages":[{"role":"user","content":[{"type":"document","source":{"type":"url","url":"URL"}}]}])",
    R"("messages":[{"role":"user","content":[{"type":"document","source":{"type":"content","content":
      [{"type":"image","source":{"type":"url","url":"URL"}}]}}]}])",
    R"("messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":
      [{"type":"image","source":{"type":"url","url":"URL"}}]}]}])",
    R"("messages":[{"role":"user","content":[{"type":"search_result","source":"URL","title":"t","content":[]}]}])",
    R"("messages":[{"role":"user","content":[{"type":"container_upload","file_id":"URL"}]}])",
    R"("messages":[{"role":"assistant","content":[{"type":"server_tool_use","id":"s","name":"web_fetch",
      "input":{"url":"URL"}}]}])",
    R"("messages":[{"role":"assistant","content":[{"type":"mcp_tool_use","server_name":"URL"}]}])",
};
constexpr const char* kOpenAi[] = {
    R"("tools":[{"type":"web_search","filters":{"allowed_domains":["URL"]}}])",
    R"("tools":[{"type":"mcp","server_label":"a","server_url":"URL"}])",
    R"("tools":[{"type":"code_interpreter","container":{"type":"auto","file_ids":["URL"]}}])",
    R"("tools":[{"type":"file_search","vector_store_ids":["URL"]}])",
    R"("tools":[{"type":"image_generation","input_image_mask":{"image_url":"URL"}}])",
    R"("tools":[{"type":"computer_use_preview","environment":"URL"}])",
    R"("tools":[{"type":"namespace","name":"n","tools":[{"type":"mcp","server_url":"URL"}]}])",
    R"("tools":[{"type":"function","name":"f","parameters":{"$ref":"URL"}}])",
    R"("input":[{"type":"additional_tools","role":"developer","tools":[{"type":"mcp","server_url":"URL"}]}])",
    R"("input":[{"type":"tool_search_output","execution":"client","tools":[{"type":"mcp","server_url":"URL"}]}])",
    R"("input":[{"type":"message","role":"user","content":[{"type":"input_image","image_url":"URL"}]}])",
    R"("input":[{"type":"message","role":"user","content":[{"type":"input_file","file_url":"URL"}]}])",
    R"("input":[{"type":"message","role":"user","content":[{"type":"input_audio","input_audio":{"url":"URL"}}]}])",
    R"("input":[{"type":"function_call_output","call_id":"c","output":[{"type":"input_image","image_url":"URL"}]}])",
    R"("input":[{"type":"custom_tool_call_output","call_id":"c","output":[{"type":"input_file","file_url":"URL"}]}])",
    R"("input":[{"type":"computer_call_output","output":{"type":"computer_screenshot","image_url":"URL"}}])",
    R"("input":[{"type":"web_search_call","action":{"type":"open_page","url":"URL"}}])",
    R"("input":[{"type":"mcp_list_tools","server_label":"URL"}])",
    R"("prompt":{"id":"p","variables":{"v":{"type":"input_image","image_url":"URL"}}})",
    R"("text":{"format":{"type":"json_schema","name":"n","schema":{"$ref":"URL"}}})",
    R"("background":true,"metadata":{"webhook":"URL"})",
};

class Decoys : public GatewayTest {
 protected:
  void expect_only_the_control_hits(const std::string& target, const std::string& members) {
    Decoy decoy;
    std::string body = R"({"model":"claude-test-1","max_tokens":10,)" + with_url(members, decoy.url()) + "}";
    if (policy_.vendor == contract::Vendor::openai) {
      body = R"({"model":"claude-test-1",)" + with_url(members, decoy.url()) + "}";
    }
    BoxClient box = client();
    box.send(post(target, body));
    std::string answer = box.read_answer();
    EXPECT_EQ(status_of(answer), 403) << body_of(answer);
    EXPECT_EQ(decoy.hits(), 0U) << members;
    EXPECT_TRUE(next_event().denied) << members;
    EXPECT_EQ(vendor_->count(), controls_) << members;
    EXPECT_EQ(status_of(ask_directly(vendor_->port(), post(target, body))), 200) << members;
    EXPECT_EQ(decoy.hits(), 1U) << members;
    ++controls_;
  }
  std::size_t controls_ = 0;
};

TEST_F(Decoys, NoFieldMakesAnthropicFetch) {
  start_vendor(fetching_vendor);
  start_gateway();
  for (const char* members : kAnthropic) expect_only_the_control_hits("/v1/messages", members);
}

TEST_F(Decoys, NoFieldMakesOpenAiFetch) {
  policy_.vendor = contract::Vendor::openai;
  policy_.credential_kind = CredentialKind::openai_api_key;
  start_vendor(fetching_vendor);
  start_gateway();
  for (const char* members : kOpenAi) expect_only_the_control_hits("/v1/responses", members);
}

// The witness works: what passes the policy reaches this vendor, and a URL in it is fetched.
TEST_F(Decoys, TheVendorBehindTheGatewayDoesFetch) {
  start_vendor(fetching_vendor);
  start_gateway();
  Decoy decoy;
  BoxClient box = client();
  box.send(post("/v1/messages",
                R"({"model":"claude-test-1","max_tokens":10,"messages":[{"role":"user","content":")" +
                    decoy.url() + R"("}]})"));
  EXPECT_EQ(status_of(box.read_answer()), 200);
  EXPECT_EQ(decoy.hits(), 1U);
}

}  // namespace
}  // namespace cofferdam::egress
