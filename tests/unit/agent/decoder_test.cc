// The decoders on streams that the pinned Claude CLI wrote against the stand-in vendor (streams/), and on
// each way in which a stream or an exit status can say less than it seems to.
#include "agent/decoder.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "contract/json.h"
#include "contract/plan_answer.h"
#include "unit/agent/decoding.h"

namespace cofferdam::agent {
namespace {

using contract::Phase;
Decoded decode(const Texts& lines, Phase phase, int code = 0) {
  return decode_as(claude_fields(phase), lines, code);
}

TEST(ClaudeStream, EditAndRun) {
  Decoded run = decode(stream("edit-and-run"), Phase::implementation);
  EXPECT_TRUE(run.verdict.ok) << run.verdict.reason;
  EXPECT_EQ(run.verdict.reason, "");
  EXPECT_EQ(run.verdict.answer, std::nullopt);  // the change is the product
  EXPECT_EQ(run.verdict.summary, "README.md greets the world now, and notes.txt has two lines.");
  EXPECT_EQ(run.verdict.version, "2.1.197");
  EXPECT_EQ(run.verdict.input_tokens, 61838U);
  EXPECT_EQ(run.verdict.output_tokens, 76U);
  EXPECT_TRUE(run.verdict.cost_usd.has_value());
  EXPECT_EQ(run.verdict.skipped_lines, 0U);
  const Texts expected = {"started",     "message",   "tool-call",   "tool-result", "tool-call",
                          "tool-result", "tool-call", "tool-result", "tool-call",   "tool-result",
                          "message",     "usage",     "answer"};
  EXPECT_EQ(run.kinds(), expected);
  EXPECT_EQ(run.events[0].data.find("\"model\":\"claude-sonnet-5\"") == std::string::npos, false);
  EXPECT_NE(run.events[8].data.find(R"("input":{"command":"wc -l notes.txt")"), std::string::npos);
  EXPECT_NE(run.events[9].data.find(R"("is_error":false,"text":"2 notes.txt")"), std::string::npos);
}

TEST(ClaudeStream, Plan) {
  Decoded run = decode(stream("plan"), Phase::planning);
  ASSERT_TRUE(run.verdict.ok) << run.verdict.reason;
  ASSERT_TRUE(run.verdict.answer.has_value());
  Result<contract::PlanAnswer> plan = contract::decode_plan_answer(*run.verdict.answer);
  ASSERT_TRUE(plan) << plan.error().line();
  EXPECT_EQ(plan->steps.at(0).title, "Edit README.md");
  EXPECT_EQ(run.verdict.summary, "Greet the world in README.md.");
}

TEST(ClaudeStream, Question) {
  Decoded run = decode(stream("question"), Phase::question);
  EXPECT_TRUE(run.verdict.ok) << run.verdict.reason;
  EXPECT_EQ(run.verdict.answer, "The greeting is in README.md.");
}

TEST(ClaudeStream, ReasoningIsItsOwnKind) {
  Decoded run = decode(stream("reasoning"), Phase::question);
  EXPECT_TRUE(run.has("reasoning"));
  EXPECT_EQ(run.verdict.answer, "42");
}

TEST(ClaudeStream, RetryIsReportedAndSurvived) {
  Decoded run = decode(stream("rate-limited-once"), Phase::question);
  EXPECT_TRUE(run.verdict.ok) << run.verdict.reason;
  ASSERT_TRUE(run.has("retry"));
  EXPECT_EQ(run.events[1].data, R"({"attempt":1,"error":"rate_limit","max_retries":1,"status":429})");
}

TEST(ClaudeStream, DeniedToolsAreAWarning) {
  Decoded run = decode(stream("denied-write"), Phase::question);
  EXPECT_TRUE(run.verdict.ok) << run.verdict.reason;
  EXPECT_TRUE(run.has("warning"));
}

struct Trap {
  const char* stream;
  Phase phase;
  int code;
  const char* reason;  // what the verdict's reason contains
};

class ClaudeTrap : public ::testing::TestWithParam<Trap> {};

// Every one of these has "success", an exit code of 0, or both, somewhere.
TEST_P(ClaudeTrap, IsNotOk) {
  const Trap& trap = GetParam();
  Decoded run = decode(stream(trap.stream), trap.phase, trap.code);
  EXPECT_FALSE(run.verdict.ok);
  EXPECT_EQ(run.verdict.answer, std::nullopt);
  EXPECT_NE(run.verdict.reason.find(trap.reason), std::string::npos) << run.verdict.reason;
}

INSTANTIATE_TEST_SUITE_P(
    Streams, ClaudeTrap,
    ::testing::Values(
        Trap{"unauthorised", Phase::question, 1, "Invalid API key"},
        Trap{"unknown-model", Phase::question, 1,
             "There's an issue with the selected model (claude-nonesuch)"},
        Trap{"refusal", Phase::implementation, 1, "appears to violate our Usage Policy"},
        Trap{"max-turns", Phase::question, 1, "error_max_turns: Reached maximum number of turns (2)"},
        Trap{"interrupted-tool", Phase::implementation, 1, "error_during_execution"},
        Trap{"stalled-term", Phase::question, 143, "without a result (exit code 143)"},
        Trap{"stalled-term", Phase::question, 0, "without a result (exit code 0)"},  // SIGINT while it waits
        Trap{"empty-answer", Phase::question, 0, "without an answer"},
        Trap{"empty-answer", Phase::implementation, 0, "without an answer"},
        Trap{"plan-in-prose", Phase::planning, 0, "without a plan"},
        Trap{"plan-off-schema", Phase::planning, 0, "without a plan"},
        Trap{"slash-command", Phase::question, 0, "the model was never asked: Unknown command: /nosuchthing"},
        Trap{"question", Phase::question, 1, "reported success and ended with exit code 1"}),
    [](const ::testing::TestParamInfo<Trap>& trap) {
      std::string name = std::string(trap.param.stream) + "_" + contract::phase_name(trap.param.phase) + "_" +
                         std::to_string(trap.param.code);
      std::replace(name.begin(), name.end(), '-', '_');
      return name;
    });

TEST(ClaudeDecoder, ForeignLinesAreSkippedAndCounted) {
  Texts lines = stream("question");
  lines.insert(lines.begin(), {"Ignoring 1 permissions.allow entry", "", "[1,2]", "{\"type\":", "\xff\xfe"});
  Decoded run = decode(lines, Phase::question);
  EXPECT_TRUE(run.verdict.ok) << run.verdict.reason;
  EXPECT_EQ(run.verdict.skipped_lines, 4U);
}

TEST(ClaudeDecoder, UnknownTypesAndWrongTypesSayNothing) {
  const Texts lines = {
      R"({"type":"brand_new"})",
      R"({"type":7})",
      R"({})",
      R"({"type":"assistant","message":"text"})",
      R"({"type":"assistant","message":{"content":[1,{"type":"text","text":5},{"type":"image"}]}})",
      R"({"type":"user","message":{"content":[{"type":"text","text":"[Request interrupted by user]"}]}})",
      R"({"type":"system","subtype":"status"})"};
  Decoded run = decode(lines, Phase::question);
  EXPECT_EQ(run.kinds(), Texts{"message"});
  EXPECT_FALSE(run.verdict.ok);
}

TEST(ClaudeDecoder, ResultWithoutIsErrorIsNotSuccess) {
  Decoded run = decode({R"({"type":"result","subtype":"success","result":"done"})"}, Phase::question);
  EXPECT_FALSE(run.verdict.ok);
  EXPECT_EQ(run.verdict.reason, "done");
}

TEST(ClaudeDecoder, PlanOffItsShapeIsRefusedEvenWhenTheCliLetItThrough) {
  Texts lines = stream("plan");
  lines.push_back(
      R"({"type":"result","subtype":"success","is_error":false,"result":"x","structured_output":{"summary":"s"}})");
  Decoded run = decode(lines, Phase::planning);
  EXPECT_FALSE(run.verdict.ok);
  EXPECT_NE(run.verdict.reason.find("the plan does not have the required form: $."), std::string::npos);
}

TEST(ClaudeDecoder, AnotherVersionIsAWarning) {
  Decoded run =
      decode({R"({"type":"system","subtype":"init","claude_code_version":"9.9.9"})"}, Phase::question);
  EXPECT_EQ(run.kinds(), (Texts{"started", "warning"}));
  EXPECT_EQ(run.verdict.version, "9.9.9");
}

TEST(ClaudeDecoder, EventsAndReasonsAreBounded) {
  const std::string big(1U << 20U, 'x');
  const Texts lines = {
      R"({"type":"assistant","message":{"model":"m","content":[{"type":"text","text":")" + big + "\"}]}}",
      R"({"type":"assistant","message":{"model":"m","content":[{"type":"tool_use","name":"Write","input":{"content":")" +
          big + "\"}}]}}",
      R"({"type":"result","subtype":"success","is_error":true,"result":")" + big + "\"}"};
  Decoded run = decode(lines, Phase::implementation);
  for (const AgentEvent& event : run.events) EXPECT_LE(event.data.size(), 200'000U) << event.kind;
  EXPECT_NE(run.events[0].data.find("\"truncated\":true"), std::string::npos);
  EXPECT_NE(run.events[1].data.find("\"input_text\""), std::string::npos);
  EXPECT_FALSE(run.verdict.ok);
  EXPECT_LE(run.verdict.reason.size(), 4096U);
}

TEST(ClaudeDecoder, ReasonIsPrintable) {
  Decoded run = decode({R"({"type":"result","subtype":"success","is_error":true,"result":"\u001b[31mred"})"},
                       Phase::question);
  EXPECT_EQ(run.verdict.reason, "\xEF\xBF\xBD[31mred");
}

TEST(CommandDecoder, ExitCodeDecides) {
  auto decoder = make_decoder(built(command_fields({"/bin/true"})));
  std::vector<AgentEvent> events = decoder->line("hello \"there\"");
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(events[0].kind, "message");
  EXPECT_EQ(events[0].data, R"({"text":"hello \"there\""})");
  Verdict good = decoder->finish(exit_with(0));
  EXPECT_TRUE(good.ok);
  EXPECT_EQ(good.summary, "");
  Verdict bad = make_decoder(built(command_fields({"/bin/false"})))->finish(exit_with(3));
  EXPECT_FALSE(bad.ok);
  EXPECT_EQ(bad.reason, "the command ended with exit code 3");
}

TEST(CommandDecoder, ShowsABoundedNumberOfLines) {
  auto decoder = make_decoder(built(command_fields({"/usr/bin/yes"})));
  std::vector<AgentEvent> all;
  for (int i = 0; i < 5000; ++i) {
    for (AgentEvent& event : decoder->line("y")) all.push_back(std::move(event));
  }
  ASSERT_EQ(all.size(), 1001U);
  EXPECT_EQ(all.back().kind, "warning");
}

}  // namespace
}  // namespace cofferdam::agent
