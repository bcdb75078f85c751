// The two things that a tunnel reads from the box: a proxy's request head, and the first message of TLS.
#include <openssl/ssl.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>

#include "egress/client_hello.h"
#include "egress/http_head.h"
#include "egress/origin.h"
#include "egress/tunnel_policy.h"
#include "fuzz/require.h"
#include "fuzz/targets.h"

namespace cofferdam::fuzz {
namespace {

using egress::ClientHello;
using egress::Destination;

const std::vector<Destination>& destinations() {
  static const std::vector<Destination> kList = [] {
    Destination tls;
    tls.host = "registry.test";
    Destination plain;
    plain.host = "mirror.test";
    plain.port = 80;
    plain.plain = true;
    return std::vector<Destination>{tls, plain};
  }();
  return kList;
}

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return out;
}

// --- the hello
// -----------------------------------------------------------------------------------------------

struct OpensslView {
  bool read = false;  // OpenSSL got as far as the name
  std::optional<std::string> name;
};

int note_name(SSL* ssl, int* /*alert*/, void* argument) {
  auto* view = static_cast<OpensslView*>(argument);
  view->read = true;
  if (const char* name = ::SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name)) view->name = name;
  return SSL_TLSEXT_ERR_ALERT_FATAL;  // nothing after it is of interest
}

// What a server with OpenSSL takes the same bytes for.
OpensslView openssl_reads(std::string_view bytes) {
  OpensslView view;
  std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context(::SSL_CTX_new(::TLS_server_method()),
                                                            &SSL_CTX_free);
  ::SSL_CTX_callback_ctrl(context.get(), SSL_CTRL_SET_TLSEXT_SERVERNAME_CB,
                          reinterpret_cast<void (*)()>(&note_name));
  ::SSL_CTX_ctrl(context.get(), SSL_CTRL_SET_TLSEXT_SERVERNAME_ARG, 0, &view);
  std::unique_ptr<SSL, decltype(&SSL_free)> ssl(::SSL_new(context.get()), &SSL_free);
  BIO* in = ::BIO_new(::BIO_s_mem());
  ::BIO_write(in, bytes.data(), static_cast<int>(bytes.size()));
  ::SSL_set_bio(ssl.get(), in, ::BIO_new(::BIO_s_mem()));
  (void)::SSL_accept(ssl.get());
  return view;
}

// A judgement on a beginning stands, whatever comes after it.
void require_stable(std::string_view bytes, const ClientHello& whole) {
  constexpr std::size_t kSteps = 8;
  for (std::size_t step = 0; step < kSteps; ++step) {
    const ClientHello part = egress::read_client_hello(bytes.substr(0, bytes.size() * step / kSteps));
    if (part.state == ClientHello::State::more) continue;
    require(part.state == whole.state, "a hello is judged again when more has come");
    require(part.server_name == whole.server_name && part.encrypted == whole.encrypted,
            "a hello names somebody else when more has come");
  }
}

void client_hello(std::string_view bytes) {
  const ClientHello hello = egress::read_client_hello(bytes);
  require_stable(bytes, hello);
  const bool done = hello.state == ClientHello::State::done;
  require(done || (!hello.server_name.has_value() && !hello.encrypted), "an unread hello says something");
  for (const Destination& destination : destinations()) {
    if (!egress::judge_hello(destination, hello).empty()) continue;
    require(done && !hello.encrypted && hello.server_name.has_value(), "a tunnel without a plain name");
    const std::string name = lower(*hello.server_name);
    require(egress::is_host_name(name) && name == destination.host, "a tunnel to somebody else");
    const OpensslView view = openssl_reads(bytes);
    require(!view.read || view.name == hello.server_name, "OpenSSL reads another name");
  }
}

// --- the head
// ------------------------------------------------------------------------------------------------

void require_connect(const egress::RequestHead& head, const Destination& to) {
  require(!to.plain, "a tunnel where only plain HTTP is allowed");
  require(lower(head.target) == to.host + ":" + std::to_string(to.port), "a tunnel to somebody else");
}

void require_plain(const egress::RequestHead& head, const egress::TunnelDecision& decision) {
  const Destination& to = *decision.destination;
  require(to.plain && (head.method == "GET" || head.method == "HEAD"), "plain HTTP where it is not allowed");
  const std::string target = lower(head.target);
  const bool ours = target.rfind("http://" + to.host, 0) == 0;
  const std::size_t behind = 7 + to.host.size();
  require(ours && (target.size() == behind || std::string_view("/?:").find(target[behind]) < 3),
          "a plain request to somebody else");
  require(decision.target.rfind('/', 0) == 0, "a path that is none");
  require(decision.target.find_first_of(" \r\n\t") == std::string::npos, "white space in a path");
}

void tunnel_head(std::string_view bytes) {
  const std::size_t end = std::min(egress::find_head_end(bytes), bytes.size());
  const egress::ParsedHead parsed =
      egress::parse_request_head(bytes.substr(0, end), egress::TargetForm::proxy);
  if (parsed.refusal) return;
  const egress::RequestHead& head = parsed.head;
  require(bytes.rfind(head.method + " " + head.target + " HTTP/1.1\r\n", 0) == 0, "another request line");
  require_one_framing(bytes.substr(0, end), head);
  const egress::TunnelDecision decision = egress::decide_tunnel(destinations(), head);
  require(!decision.rule.empty(), "a decision without a rule");
  if (decision.destination == nullptr) {
    require(decision.status >= 400 && decision.status < 500, "a denial that does not look like one");
    return;
  }
  require(head.framing == egress::Framing::none && !head.expect_continue, "a body before the tunnel");
  const std::string* host = egress::find_field(head, "host");
  require(host != nullptr && lower(*host).rfind(decision.destination->host, 0) == 0, "two authorities");
  if (head.method == "CONNECT") {
    require_connect(head, *decision.destination);
  } else {
    require_plain(head, decision);
  }
}

}  // namespace

void require_one_framing(std::string_view bytes, const egress::RequestHead& head) {
  const std::string text = lower(bytes);
  const auto lines_with = [&text](std::string_view start) {
    std::size_t count = 0;
    for (std::size_t at = text.find('\n'); at != std::string::npos; at = text.find('\n', at + 1)) {
      if (text.compare(at + 1, start.size(), start) == 0) ++count;
    }
    return count;
  };
  const std::size_t lengths = lines_with("content-length:");
  const std::size_t codings = lines_with("transfer-encoding:");
  require(lengths + codings <= 1, "two framings in one head");
  require((codings == 1) == (head.framing == egress::Framing::chunked), "another framing than was asked for");
}

const std::vector<Target>& tunnel_targets() {
  static const std::vector<Target> kTargets = {{"client_hello", client_hello}, {"tunnel_head", tunnel_head}};
  return kTargets;
}

}  // namespace cofferdam::fuzz
