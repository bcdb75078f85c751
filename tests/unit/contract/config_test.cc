#include "contract/config.h"

#include <gtest/gtest.h>

#include "base/text.h"

namespace cofferdam::contract {
namespace {

std::string problem(std::string_view toml) {
  auto decoded = decode_config(toml, "config.toml");
  if (decoded) return "accepted";
  EXPECT_EQ(decoded.error().code, Code::config);
  return decoded.error().what;
}

TEST(Config, EmptyIsTheDefaults) {
  auto decoded = decode_config("# nothing\n", "config.toml");
  ASSERT_TRUE(decoded);
  EXPECT_EQ(decoded->anthropic.upstream, "https://api.anthropic.com");
  EXPECT_EQ(decoded->openai.upstream, "https://api.openai.com");
  EXPECT_EQ(decoded->openai.credential_env, "OPENAI_API_KEY");
  EXPECT_EQ(decoded->codex_model, "gpt-6.2-sol");
  EXPECT_EQ(decoded->branch_prefix, "cofferdam");
  EXPECT_TRUE(decoded->limits == Limits{});
}

TEST(Config, ReadsEveryKey) {
  auto decoded = decode_config(R"(
[vendors.anthropic]
upstream = "https://gateway.example:8443"
ca_bundle = "/etc/ssl/internal.pem"
credential = "command"
credential_env = "GATEWAY_KEY"
credential_file = "/home/me/login.json"
credential_command = ["/usr/bin/pass", "show", "vendor"]
credential_bearer = true
keyring = "vendor key"
token_url = "https://login.example:8443/oauth/token"
vendor_tools = ["web_search_20250305"]
head_timeout = "90s"
idle_timeout = "1500ms"
answer_bytes = 1_000_000
[vendors.openai]
upstream = "https://openai.example"
ca_bundle = "/etc/ssl/openai.pem"
credential_env = "OTHER_KEY"
[commit]
author_name = "Jörg Bot"
author_email = "bot@example"
[branch]
prefix = "team/agents"
[agents]
dir = "/opt/agents"
[agents.claude]
model = "claude-x[1m]"
[agents.codex]
model = "gpt-x"
[box]
uid = 1234
[debug]
capture_bodies = true
[deadlines]
total = "1h30m"
grace = "250ms"
[limits]
work_bytes = 1_048_576
requests = 7
tokens = 2_000_000
cost_usd_micros = 5_000_000
parallel_requests = 3
[prices."claude-x[1m]"]
input = 2
output = 10.5
cache_read = 0.2
)",
                               "config.toml");
  ASSERT_TRUE(decoded) << decoded.error().line();
  EXPECT_EQ(decoded->anthropic.upstream, "https://gateway.example:8443");
  EXPECT_EQ(decoded->anthropic.ca_bundle, "/etc/ssl/internal.pem");
  EXPECT_EQ(decoded->anthropic.credential_env, "GATEWAY_KEY");
  EXPECT_EQ(decoded->anthropic.head_timeout, std::chrono::seconds(90));
  EXPECT_EQ(decoded->anthropic.idle_timeout, std::chrono::milliseconds(1500));
  EXPECT_EQ(decoded->anthropic.answer_bytes, 1'000'000U);
  EXPECT_EQ(decoded->openai.head_timeout, std::chrono::minutes(10));
  EXPECT_EQ(decoded->vendor(Vendor::openai).upstream, "https://openai.example");
  EXPECT_EQ(decoded->vendor(Vendor::openai).ca_bundle, "/etc/ssl/openai.pem");
  EXPECT_EQ(decoded->vendor(Vendor::openai).credential_env, "OTHER_KEY");
  EXPECT_EQ(decoded->vendor(Vendor::anthropic).credential_env, "GATEWAY_KEY");
  EXPECT_EQ(decoded->codex_model, "gpt-x");
  EXPECT_TRUE(decoded->capture_bodies);
  EXPECT_EQ(decoded->anthropic.credential, CredentialSource::command);
  EXPECT_EQ(decoded->anthropic.credential_file, "/home/me/login.json");
  EXPECT_EQ(decoded->anthropic.credential_command,
            (std::vector<std::string>{"/usr/bin/pass", "show", "vendor"}));
  EXPECT_TRUE(decoded->anthropic.bearer);
  EXPECT_EQ(decoded->anthropic.keyring, "vendor key");
  EXPECT_EQ(decoded->anthropic.token_url, "https://login.example:8443/oauth/token");
  EXPECT_EQ(decoded->limits.tokens, 2'000'000U);
  EXPECT_EQ(decoded->limits.cost_usd_micros, 5'000'000U);
  EXPECT_EQ(decoded->limits.parallel_requests, 3U);
  EXPECT_EQ(decoded->prices.at("claude-x[1m]"),
            (ModelPrice{2'000'000, 10'500'000, 200'000, 2'000'000, 2'000'000}));
  EXPECT_EQ(decoded->author_name, "Jörg Bot");
  EXPECT_EQ(decoded->author_email, "bot@example");
  EXPECT_EQ(decoded->branch_prefix, "team/agents");
  EXPECT_EQ(decoded->agents_dir, "/opt/agents");
  EXPECT_EQ(decoded->claude_model, "claude-x[1m]");
  EXPECT_EQ(decoded->box_uid, 1234U);
  EXPECT_EQ(decoded->deadlines.total, std::chrono::minutes(90));
  EXPECT_EQ(decoded->deadlines.grace, std::chrono::milliseconds(250));
  EXPECT_EQ(decoded->limits.work_bytes, 1U << 20U);
  EXPECT_EQ(decoded->limits.requests, 7U);
}

TEST(Config, ErrorsNameFileLineAndKey) {
  EXPECT_EQ(problem("\n[commit]\nauthor = \"x\"\n"), "config.toml:3: commit.author: unknown key");
  EXPECT_EQ(problem("[vendor]\n"), "config.toml:1: vendor: unknown key");
  EXPECT_EQ(problem("limits = 1\n"), "config.toml:1: limits: must be a table");
  EXPECT_EQ(problem("[limits]\nrequests = \"7\"\n"), "config.toml:2: limits.requests: must be an integer");
  EXPECT_EQ(problem("[limits]\nrequests = 7.0\n"), "config.toml:2: limits.requests: must be an integer");
  EXPECT_EQ(problem("[limits]\nrequests = -1\n"),
            "config.toml:2: limits.requests: must be an integer from 1 to 1000000");
  EXPECT_EQ(problem("[deadlines]\ntotal = 30\n"),
            "config.toml:2: deadlines.total: must be a duration in quotes, such as \"30m\"");
  EXPECT_TRUE(starts_with(problem("[deadlines]\ntotal = \"30 m\"\n"),
                          "config.toml:2: deadlines.total: not a duration"));
  EXPECT_TRUE(starts_with(problem("[deadlines]\ntotal = \"8h\"\ngrace = \"61s\"\n"),
                          "config.toml:3: deadlines.grace: "));
  EXPECT_TRUE(starts_with(problem("a = 1\na = 2\n"), "config.toml:2: not TOML: "));
  EXPECT_TRUE(starts_with(problem("[a\n"), "config.toml:1: not TOML: "));
  EXPECT_EQ(problem("a = \"\xFF\"\n"), "config.toml: not UTF-8");
  EXPECT_NE(problem("a = " + std::string(100'000, '[')), "accepted");
  EXPECT_NE(problem(std::string(2U << 20U, '#')), "accepted");
}

void expect_value(const char* table, const char* key, const std::vector<std::string>& good,
                  const std::vector<std::string>& bad) {
  const std::string head = std::string("[") + table + "]\n" + key + " = ";
  for (const std::string& value : good) EXPECT_EQ(problem(head + value), "accepted") << value;
  const std::string where = std::string("config.toml:2: ") + table + "." + key + ": ";
  for (const std::string& value : bad) {
    EXPECT_TRUE(starts_with(problem(head + value), where)) << value << " gives " << problem(head + value);
  }
}

TEST(Config, UpstreamIsAnOrigin) {
  expect_value("vendors.anthropic", "upstream",
               {"'https://a/v1'", "'https://a:1/models/eu-1'", "'https://a'", "'https://a.b-c.example:1'",
                "'https://[::1]:65535'", "'https://127.0.0.1:8443'"},
               {"''",
                "'http://a'",
                "'HTTPS://a'",
                "'https://'",
                "'https://a/'",
                "'https://a//v1'",
                "'https://a/v1/'",
                "'https://a/../v1'",
                "'https://a/v%31'",
                "'https://a/v1?x'",
                "'https://u@a'",
                "'https://u:p@a'",
                "'https://a?x'",
                "'https://a#x'",
                "'https://a:'",
                "'https://a:0'",
                "'https://a:65536'",
                "'https://a:1:2'",
                "'https://a b'",
                "\"https://a\\n\"",
                "'https://-a'",
                "'https://a..b'",
                "'https://[::1'",
                "'https://[x]'",
                "7"});
}

TEST(Config, BranchPrefixIsAPartOfARef) {
  expect_value(
      "branch", "prefix", {"'a'", "'team/agents'", "'a.b'", "'\u00e9'"},
      {"''",     "'-a'", "'a/-b'",   "'a..b'",     "'/a'",   "'a/'", "'a//b'",       "'.a'",
       "'a/.b'", "'a.'", "'a.lock'", "'a.lock/b'", "'a b'",  "'a~'", "'a^'",         "'a:b'",
       "'a?'",   "'a*'", "'a[b'",    "'a\\b'",     "'a@{b'", "'@'",  "\"a\\u0001\"", "\"a\\u007f\""});
}

TEST(Config, IdentsAndPathsAreClean) {
  expect_value("commit", "author_name", {"'A B'"},
               {"''", "' '", "'a<b'", "'a>b'", "\"a\\nb\"", "\"a\\u0000\""});
  expect_value("commit", "author_email", {"'a@b'"}, {"''", "'a b@c'", "'<a@b>'", "\"a@b\\r\""});
  expect_value("commit", "sign_key", {"''", "'/home/a/.ssh/id'"}, {"'id'", "'~/.ssh/id'", "\"/a\\u0001\""});
  expect_value("vendors.anthropic", "ca_bundle", {"''", "'/a'"}, {"'a'", "\"/a\\u0001\""});
  expect_value("vendors.anthropic", "extra_ca_bundle", {"''", "'/a'"}, {"'a'", "\"/a\\u0001\""});
  expect_value(
      "vendors.anthropic", "proxy", {"''", "'http://proxy.corp:3128'", "'http://[fd00::1]:80'"},
      {"'http://proxy.corp'", "'https://proxy.corp:1'", "'http://u:p@proxy.corp:1'", "'http://p:1/x'"});
  expect_value("vendors.anthropic", "credential_env", {"'A_1'", "'_a'"}, {"''", "'1A'", "'A=B'", "'A-B'"});
  expect_value("vendors.openai", "head_timeout", {"'1ms'", "'24h'"}, {"'0s'", "'25h'", "60"});
  expect_value("vendors.openai", "idle_timeout", {"'1ms'", "'24h'"}, {"'0s'", "'25h'", "60"});
  expect_value("vendors.openai", "answer_bytes", {"1", "17179869184"}, {"0", "17179869185", "'1'"});
  expect_value("vendors.openai", "vendor_tools", {"[]", "['web_search']"},
               {"'web_search'", "[1]", "['']", "['Web']", "['a b']", "[['a']]"});
  expect_value("vendors.anthropic", "credential", {"'env'", "'file'"}, {"''", "'vault'", "1"});
  expect_value("vendors.anthropic", "credential_command", {"['/bin/true', '']"},
               {"'/bin/true'", "[]", "['true']", "['/bin/true', 1]", "[\"/bin/true\", \"a\\u0000\"]"});
  expect_value("vendors.anthropic", "credential_bearer", {"true"}, {"'true'", "1"});
  expect_value("vendors.anthropic", "keyring", {"'a b'"}, {"''", "\"a\\n\""});
  expect_value(
      "vendors.anthropic", "token_url", {"'https://a:1/x/y'"},
      {"'https://a'", "'http://a/x'", "'https://u@a/x'", "'https://a/x?y'", "'https://a/x y'", "'/x'"});
  expect_value("prices.m", "input", {"1", "0.25", "10000"}, {"-1", "'1'", "10001", "inf", "nan"});
  expect_value("agents", "dir", {"''", "'/opt'"}, {"'opt'"});
  expect_value("agents.claude", "model", {"'m'"}, {"''", "'m m'"});
  expect_value("agents.codex", "model", {"'m'"}, {"''", "'m m'"});
  expect_value("vendors.openai", "upstream", {"'https://a:1'", "'https://a/v1'"},
               {"'http://a'", "'https://a/?q'"});
  expect_value("box", "uid", {"1", "2147483647"}, {"0", "-1", "2147483648", "'1'", "1.0"});
}

TEST(Config, ASourceMustBeNamed) {
  for (const char* source : {"command", "keyring"}) {
    auto decoded =
        decode_config(std::string("[vendors.anthropic]\ncredential = '") + source + "'\n", "c.toml");
    ASSERT_FALSE(decoded) << source;
    EXPECT_EQ(decoded.error().code, Code::config);
    EXPECT_NE(decoded.error().what.find(source), std::string::npos) << decoded.error().what;
  }
}

TEST(Duration, Parses) {
  using std::chrono::milliseconds;
  const std::pair<const char*, std::int64_t> good[] = {
      {"30m", 1'800'000}, {"90s", 90'000}, {"1h30m", 5'400'000},
      {"250ms", 250},     {"0s", 0},       {"1h2m3s4ms", 3'723'004}};
  for (const auto& [text, expected] : good) {
    auto parsed = parse_duration(text);
    ASSERT_TRUE(parsed) << text;
    EXPECT_EQ(*parsed, milliseconds(expected)) << text;
  }
  for (const char* text : {"", "30", "m", "-1s", "+1s", "1.5h", "30 m", " 30m", "30M", "1s1h", "1m1m", "1d",
                           "1s2", "999999999999h", "9999999999999s", "1h\n", "0x1s"}) {
    auto parsed = parse_duration(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_EQ(parsed.error().code, Code::usage);
  }
}

constexpr const char* kDestinations = R"(
[[destinations]]
name = "packages"
host = "packages.example"
port = 8443
addresses = ["10.0.0.0/8", "fd00::/8"]
max_sent = 1000
max_received = 2000
credential = "command"
credential_command = ["/usr/bin/pass", "show", "packages"]
credential_scheme = "basic"
ca_bundle = "/etc/ssl/internal.pem"
[[destinations]]
name = "mirror"
host = "mirror.example"
port = 80
plain = true
[repositories."/srv/app"]
destinations = ["mirror", "packages"]
[repositories."/srv/other"]
)";

TEST(Config, DestinationsAndWhoOpensThem) {
  auto decoded = decode_config(kDestinations, "config.toml");
  ASSERT_TRUE(decoded) << decoded.error().line();
  ASSERT_EQ(decoded->destinations.size(), 2U);
  const NamedDestination& packages = decoded->destinations[0];
  EXPECT_TRUE(
      (packages.destination ==
       Destination{"packages.example", 8443, false, {"10.0.0.0/8", "fd00::/8"}, 1000, 2000, "packages"}));
  ASSERT_TRUE(packages.credential.has_value());
  EXPECT_EQ(packages.credential->source, CredentialSource::command);
  EXPECT_EQ(packages.credential->command.size(), 3U);
  EXPECT_TRUE(packages.credential->basic);
  EXPECT_EQ(packages.credential->ca_bundle, "/etc/ssl/internal.pem");
  EXPECT_TRUE(decoded->destinations[1].destination.plain);
  EXPECT_FALSE(decoded->destinations[1].credential.has_value());
  EXPECT_EQ(decoded->destinations[1].destination.credential, "");
  EXPECT_EQ(decoded->repositories.at("/srv/app"), (std::vector<std::string>{"mirror", "packages"}));
  EXPECT_TRUE(decoded->repositories.at("/srv/other").empty());
}

TEST(Config, MalformedDestinationsAreNamed) {
  const std::string one = "[[destinations]]\nname = \"a\"\nhost = \"a.example\"\n";
  EXPECT_EQ(problem(one), "accepted");
  for (const auto& [toml, part] : std::vector<std::pair<std::string, std::string>>{
           {"destinations = 1\n", "destinations: must be an array of tables"},
           {"destinations = [1]\n", "destinations[0]: must be a table"},
           {"[[destinations]]\nhost = \"a.example\"\n", "destinations[0].name: must be"},
           {"[[destinations]]\nname = \"a\"\n", "destinations[0].host: must be"},
           {"[[destinations]]\nname = \"a b\"\nhost = \"a.example\"\n", ":2: destinations[0].name"},
           {"[[destinations]]\nname = \"a\"\nhost = \"192.0.2.1\"\n", ":3: destinations[0].host"},
           {one + "port = 0\n", "destinations[0].port"},
           {one + "addresses = [\"10.0.0.1/8\"]\n", "destinations[0].addresses"},
           {one + "max_sent = 0\n", "destinations[0].max_sent"},
           {one + "path = \"/\"\n", "destinations[0].path: unknown key"},
           {one + "credential = \"file\"\n", "destinations[0].credential: must be one of"},
           {one + "credential = \"env\"\n", "destinations[0].credential_env: must be set"},
           {one + "credential = \"keyring\"\n", "destinations[0].keyring: must be set"},
           {one + "credential_env = \"TOKEN\"\n", "destinations[0].credential: must be set"},
           {one + "ca_bundle = \"/ca.pem\"\n", "destinations[0].credential: must be set"},
           {one + "plain = true\ncredential = \"env\"\ncredential_env = \"T\"\n",
            "would be sent without TLS"},
           {one + one, "destinations[1].name: is the name of an earlier one"},
           {one + "[[destinations]]\nname = \"b\"\nhost = \"a.example\"\n",
            "the host and port of an earlier one"},
           {one + "[repositories.\"app\"]\ndestinations = [\"a\"]\n", "absolute path"},
           {one + "[repositories.\"/app\"]\ndestinations = [\"b\"]\n", "there is no \"b\""},
           {one + "[repositories.\"/app\"]\nhosts = [\"a\"]\n", "hosts: unknown key"}}) {
    EXPECT_NE(problem(toml).find(part), std::string::npos) << toml << "\n" << problem(toml);
  }
}

}  // namespace
}  // namespace cofferdam::contract
