#include "contract/invocation.h"

#include <gtest/gtest.h>

#include <functional>
#include <set>

#include "base/sha256.h"
#include "base/text.h"

namespace cofferdam::contract {
namespace {

const std::string kHead(40, 'a');

InvocationFields claude() {
  InvocationFields fields;
  fields.attempt_id = "a-1";
  fields.phase = Phase::implementation;
  fields.agent.name = "claude";
  fields.clone = {"/srv/project", kHead, std::nullopt};
  fields.prompt = "Do it.";
  fields.egress = Vendor::anthropic;
  fields.model = "claude-sonnet-5";
  return fields;
}

InvocationFields command() {
  InvocationFields fields = claude();
  fields.agent = {"command", {"/bin/true"}};
  fields.egress = Vendor::none;
  fields.model.clear();
  return fields;
}

TEST(Invocation, CanonicalFormHoldsEverything) {
  auto built = build_invocation(claude());
  ASSERT_TRUE(built) << built.error().line();
  EXPECT_EQ(
      built->canonical(),
      R"({"agent":{"argv":[],"name":"claude","version":null},"answer_schema":null,"attempt_id":"a-1","backend":"native","clone":{"head":")" +
          kHead +
          R"(","history":"full","repository":"/srv/project","tree":null,"work_tree":null},"commands":[],"context":null,)"
          R"("deadlines":{"first_output_ms":null,"grace_ms":5000,"idle_ms":null,"total_ms":1800000},)"
          R"("destinations":[],"egress":"anthropic","image":null,)"
          R"("limits":{"cost_usd_micros":0,"events":100000,"line_bytes":33554432,"max_tokens":64000,)"
          R"("memory_bytes":4294967296,"parallel_requests":32,"pids":4096,)"
          R"("requests":500,"scratch_bytes":536870912,"scratch_inodes":100000,"stderr_bytes":67108864,)"
          R"("stdout_bytes":67108864,"tokens":0,)"
          R"("work_bytes":2147483648,"work_inodes":500000},"model":"claude-sonnet-5","phase":"implementation",)"
          R"("prompt":"Do it.","schema":"cofferdam.invocation/1","shell":"sandboxed","when_full":"queue"})");
  EXPECT_EQ(built->sha256(), sha256_hex(built->canonical()));
}

TEST(Invocation, DecodingTheCanonicalFormGivesTheSame) {
  InvocationFields fields = claude();
  fields.clone.tree = std::string(40, 'b');
  fields.agent.version = "2.1.197";
  fields.context = CapturedContext{"issues/42",
                                   7,
                                   std::string(64, '0'),
                                   {{"notes/a b.md", std::string(64, '1')}, {"c", std::string(64, '2')}}};
  fields.answer_schema = R"({"properties":{"n":{"type":"integer"}},"type":"object"})";
  fields.commands = {{"test", {"make", "test", ""}}, {"lint", {"make", "lint"}}};
  fields.deadlines = {std::chrono::milliseconds(1), std::chrono::milliseconds(0),
                      std::chrono::milliseconds(2), std::chrono::milliseconds(3)};
  fields.image = "sha256:" + std::string(64, 'c');
  fields.when_full = WhenFull::refuse;
  fields.shell = Shell::none;
  fields.limits.requests = 1;
  fields.backend = Backend::docker;
  fields.destinations = {{"registry.example"}, {"registry.example", 80, true, {"10.0.0.0/8"}, 5, 6}};
  fields.prompt = "Gr\u00fc\u00dfe \U0001F980\u0001\n";
  auto built = build_invocation(fields);
  ASSERT_TRUE(built) << built.error().line();
  auto decoded = decode_invocation(built->canonical());
  ASSERT_TRUE(decoded) << decoded.error().line();
  EXPECT_TRUE(**decoded == fields);
  EXPECT_EQ(decoded->canonical(), built->canonical());
}

using Spoil = std::function<void(InvocationFields*)>;
struct Rule {
  const char* path;
  Spoil spoil;
};

void expect_refused(const InvocationFields& valid, const std::vector<Rule>& rules) {
  ASSERT_TRUE(build_invocation(valid));
  for (const Rule& rule : rules) {
    InvocationFields fields = valid;
    rule.spoil(&fields);
    auto built = build_invocation(fields);
    ASSERT_FALSE(built) << rule.path;
    EXPECT_EQ(built.error().code, Code::usage);
    EXPECT_TRUE(starts_with(built.error().what, std::string(rule.path) + ": "))
        << rule.path << " but got " << built.error().what;
  }
}

TEST(Invocation, BuildingHasTheRulesOfDecoding) {
  expect_refused(
      claude(),
      {
          {"$.attempt_id", [](auto* f) { f->attempt_id = "-a"; }},
          {"$.agent.name", [](auto* f) { f->agent.name = "gemini"; }},
          {"$.agent.argv", [](auto* f) { f->agent.argv = {"x"}; }},
          {"$.egress", [](auto* f) { f->egress = Vendor::none; }},
          {"$.egress", [](auto* f) { f->egress = Vendor::openai; }},
          {"$.egress", [](auto* f) { f->agent.name = "codex"; }},
          {"$.model", [](auto* f) { f->model.clear(); }},
          {"$.model", [](auto* f) { f->model = "a b"; }},
          {"$.destinations[0].host", [](auto* f) { f->destinations = {{""}}; }},
          {"$.destinations[0].host", [](auto* f) { f->destinations = {{"Registry.example"}}; }},
          {"$.destinations[0].host", [](auto* f) { f->destinations = {{"192.0.2.1"}}; }},
          {"$.destinations[0].port",
           [](auto* f) {
             f->destinations = {{"registry.example", 0}};
           }},
          {"$.destinations[0].addresses",
           [](auto* f) {
             f->destinations = {{"registry.example", 443, false, {"10.0.0.1/8"}}};
           }},
          {"$.destinations[0].max_sent",
           [](auto* f) {
             f->destinations = {{"registry.example", 443, false, {}, 0}};
           }},
          {"$.destinations[1]",
           [](auto* f) {
             f->destinations = {{"registry.example"}, {"registry.example", 443, true}};
           }},
          {"$.destinations", [](auto* f) { f->destinations.assign(65, {"registry.example"}); }},
          {"$.clone.repository", [](auto* f) { f->clone.repository = "srv"; }},
          {"$.clone.repository", [](auto* f) { f->clone.repository = std::string("/a\0b", 4); }},
          {"$.clone.repository", [](auto* f) { f->clone.repository = "/\xFF"; }},
          {"$.clone.head", [](auto* f) { f->clone.head = "HEAD"; }},
          {"$.clone.head", [](auto* f) { f->clone.head = "-" + kHead.substr(1); }},
          {"$.clone.tree", [](auto* f) { f->clone.tree = std::string(64, 'a'); }},
          {"$.prompt", [](auto* f) { f->prompt.clear(); }},
          {"$.prompt", [](auto* f) { f->prompt = "\xC0\xAF"; }},
          {"$.prompt", [](auto* f) { f->prompt.assign(kMaxPromptBytes + 1, 'x'); }},
          {"$.context.version",
           [](auto* f) {
             f->context = CapturedContext{"n", 0, std::string(64, '0')};
           }},
          {"$.context.name",
           [](auto* f) {
             f->context = CapturedContext{"n n", 1, std::string(64, '0')};
           }},
          {"$.context.sha256",
           [](auto* f) {
             f->context = CapturedContext{"n", 1, "0"};
           }},
          {"$.deadlines.total_ms", [](auto* f) { f->deadlines.total = std::chrono::milliseconds(0); }},
          {"$.deadlines.total_ms", [](auto* f) { f->deadlines.total = std::chrono::milliseconds::max(); }},
          {"$.deadlines.grace_ms", [](auto* f) { f->deadlines.grace = std::chrono::milliseconds(-1); }},
          {"$.limits.work_bytes", [](auto* f) { f->limits.work_bytes = 0; }},
          {"$.limits.max_tokens", [](auto* f) { f->limits.max_tokens = ~0ULL; }},
      });
}

TEST(Invocation, ArgvAndCommandsAreBounded) {
  expect_refused(
      command(),
      {
          {"$.agent.argv", [](auto* f) { f->agent.argv.clear(); }},
          {"$.agent.argv", [](auto* f) { f->agent.argv.assign(kMaxArgvEntries + 1, "x"); }},
          {"$.agent.argv", [](auto* f) { f->agent.argv.assign(20, std::string(kMaxArgBytes - 1, 'x')); }},
          {"$.agent.argv[0]", [](auto* f) { f->agent.argv = {""}; }},
          {"$.agent.argv[1]",
           [](auto* f) {
             f->agent.argv = {"x", std::string("a\0", 2)};
           }},
          {"$.agent.argv[1]",
           [](auto* f) {
             f->agent.argv = {"x", std::string(kMaxArgBytes, 'x')};
           }},
          {"$.model", [](auto* f) { f->model = "m"; }},
          {"$.commands[0].id",
           [](auto* f) {
             f->commands = {{"A", {"x"}}};
           }},
          {"$.commands[1].id",
           [](auto* f) {
             f->commands = {{"a", {"x"}}, {"a", {"y"}}};
           }},
          {"$.commands[0].argv",
           [](auto* f) {
             f->commands = {{"a", {}}};
           }},
          {"$.commands",
           [](auto* f) {
             f->commands = {{"a", {"x"}}};
             f->phase = Phase::review;
           }},
      });
  InvocationFields empty_prompt = command();
  empty_prompt.prompt.clear();
  EXPECT_TRUE(build_invocation(empty_prompt));
}

TEST(Invocation, DecodingErrorsAreUsageWithAPath) {
  auto decoded = decode_invocation(R"({"schema":"cofferdam.invocation/1","deadlines":{"total_ms":1e400}})");
  ASSERT_FALSE(decoded);
  EXPECT_EQ(decoded.error().code, Code::usage);
  EXPECT_TRUE(starts_with(decoded.error().what, "$.deadlines.total_ms: ")) << decoded.error().what;
}

TEST(Invocation, CanonicalFormCanAlwaysBeReadBack) {
  InvocationFields fields = claude();
  fields.prompt.assign(kMaxPromptBytes, '\x01');  // six bytes each when escaped
  auto built = build_invocation(fields);
  ASSERT_FALSE(built);
  EXPECT_TRUE(starts_with(built.error().what, "$: larger than"));
}

TEST(Invocation, NewIdsAreValidAndDistinct) {
  std::set<std::string> seen;
  for (int i = 0; i < 100; ++i) {
    InvocationFields fields = claude();
    fields.attempt_id = new_attempt_id();
    EXPECT_EQ(fields.attempt_id.size(), 19U);
    EXPECT_TRUE(build_invocation(fields)) << fields.attempt_id;
    EXPECT_TRUE(seen.insert(fields.attempt_id).second);
  }
}

}  // namespace
}  // namespace cofferdam::contract
