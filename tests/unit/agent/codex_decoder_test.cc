// The decoder on streams that the pinned Codex CLI wrote against the stand-in vendor (streams/codex-*), and
// on each way in which a stream or an exit status can say less than it seems to.
#include <gtest/gtest.h>

#include "contract/json.h"
#include "contract/plan_answer.h"
#include "unit/agent/decoding.h"

namespace cofferdam::agent {
namespace {

using contract::Phase;

Decoded decode(const Texts& lines, Phase phase, int code = 0) {
  return decode_as(codex_fields(phase), lines, code);
}

TEST(CodexStream, EditAndRunInBothToolModes) {
  for (const char* name : {"codex-edit-and-run", "codex-edit-and-run-classic"}) {
    Decoded run = decode(stream(name), Phase::implementation);
    EXPECT_TRUE(run.verdict.ok) << run.verdict.reason;
    EXPECT_EQ(run.verdict.reason, "");
    EXPECT_EQ(run.verdict.answer, std::nullopt);  // the change is the product
    EXPECT_EQ(run.verdict.summary, "README.md greets the world now, and notes.txt has two lines.");
    EXPECT_EQ(run.verdict.version, "");  // the CLI does not say it
    EXPECT_GT(run.verdict.input_tokens, 30000U);
    EXPECT_EQ(run.verdict.output_tokens, 78U);
    EXPECT_EQ(run.verdict.cost_usd, std::nullopt);
    EXPECT_EQ(run.verdict.skipped_lines, 0U);
    const Texts expected = {"started",     "message",     "tool-call", "tool-result",
                            "tool-call",   "tool-result", "reasoning", "tool-call",
                            "tool-result", "message",     "usage",     "answer"};
    EXPECT_EQ(run.kinds(), expected);
    EXPECT_EQ(
        run.events[2].data,
        R"({"id":"item_1","input":{"command":"/bin/bash -lc 'cat README.md'"},"name":"command_execution"})");
    EXPECT_EQ(run.events[3].data, R"({"id":"item_1","is_error":false,"text":"# Sample\n\nHello\n"})");
    EXPECT_EQ(run.events[4].data, R"({"id":"item_2","input":{"changes":[)"
                                  R"({"kind":"update","path":"/workspace/README.md"},)"
                                  R"({"kind":"add","path":"/workspace/notes.txt"}]},"name":"file_change"})");
    EXPECT_EQ(run.events[5].data, R"({"id":"item_2","is_error":false,"text":""})");
  }
}

TEST(CodexStream, Plan) {
  Decoded run = decode(stream("codex-plan"), Phase::planning);
  ASSERT_TRUE(run.verdict.ok) << run.verdict.reason;
  ASSERT_TRUE(run.verdict.answer.has_value());
  Result<contract::PlanAnswer> plan = contract::decode_plan_answer(*run.verdict.answer);
  ASSERT_TRUE(plan) << plan.error().line();
  EXPECT_EQ(plan->steps.at(0).title, "Edit README.md");
  EXPECT_EQ(run.verdict.summary, "Greet the world in README.md.");
}

TEST(CodexStream, Question) {
  Decoded run = decode(stream("codex-question"), Phase::question);
  EXPECT_TRUE(run.verdict.ok) << run.verdict.reason;
  EXPECT_EQ(run.verdict.answer, "The greeting is in README.md.");
}

TEST(CodexStream, RetriesAreReportedAndSurvived) {
  for (const char* name : {"codex-rate-limited-once", "codex-reset-once"}) {
    Decoded run = decode(stream(name), Phase::question);
    EXPECT_TRUE(run.verdict.ok) << run.verdict.reason;
    EXPECT_TRUE(run.has("retry")) << name;
    EXPECT_EQ(run.verdict.answer, "42");
  }
}

TEST(CodexStream, AFailedCommandIsNotAFailedRun) {
  Decoded run = decode(stream("codex-failed-command"), Phase::question);
  EXPECT_TRUE(run.verdict.ok) << run.verdict.reason;
  EXPECT_EQ(run.events[2].data, R"({"id":"item_0","is_error":true,"text":""})");
}

struct Trap {
  const char* stream;
  Phase phase;
  int code;
  const char* reason;  // what the verdict's reason contains
};

class CodexTrap : public ::testing::TestWithParam<Trap> {};

TEST_P(CodexTrap, IsNotOk) {
  const Trap& trap = GetParam();
  Decoded run = decode(stream(trap.stream), trap.phase, trap.code);
  EXPECT_FALSE(run.verdict.ok);
  EXPECT_EQ(run.verdict.answer, std::nullopt);
  EXPECT_NE(run.verdict.reason.find(trap.reason), std::string::npos) << run.verdict.reason;
}

INSTANTIATE_TEST_SUITE_P(
    Streams, CodexTrap,
    ::testing::Values(
        Trap{"codex-unauthorised", Phase::question, 1,
             "unexpected status 401 Unauthorized: Incorrect API key provided."},
        Trap{"codex-unknown-model", Phase::question, 1, "The model `gpt-6.2-sol` does not exist"},
        Trap{"codex-response-failed", Phase::implementation, 1, "The model is having a bad day."},
        Trap{"codex-cut-off", Phase::question, 1, "Incomplete response returned, reason: max_output_tokens"},
        Trap{"codex-stalled", Phase::question, 143, "without a result (exit code 143)"},
        Trap{"codex-stalled", Phase::question, 0, "without a result (exit code 0)"},
        // From here on the CLI itself sees a success, with exit code 0.
        Trap{"codex-no-code-mode-host", Phase::implementation, 0, "Code Mode is unavailable because"},
        Trap{"codex-empty-answer", Phase::question, 0, "without an answer"},
        Trap{"codex-empty-answer", Phase::implementation, 0, "without an answer"},
        Trap{"codex-plan-in-prose", Phase::planning, 0, "the plan does not have the required form: $"},
        Trap{"codex-plan-off-schema", Phase::planning, 0, "the plan does not have the required form: $."},
        Trap{"codex-question", Phase::question, 1, "reported success and ended with exit code 1"}),
    [](const ::testing::TestParamInfo<Trap>& trap) {
      std::string name = std::string(trap.param.stream) + "_" + contract::phase_name(trap.param.phase) + "_" +
                         std::to_string(trap.param.code);
      std::replace(name.begin(), name.end(), '-', '_');
      return name;
    });

TEST(CodexDecoder, TheReasonOfAFailedTurnIsKept) {
  const Texts lines = {
      R"({"type":"error","message":"Reconnecting... 1/2"})",
      R"({"type":"turn.failed","error":{"message":"second"}})",
      R"({"type":"item.completed","item":{"id":"item_0","type":"agent_message","text":"All done!"}})",
      R"({"type":"turn.completed","usage":{"input_tokens":1,"output_tokens":1}})"};
  EXPECT_EQ(decode(lines, Phase::question).verdict.reason, "second");
  EXPECT_EQ(decode({R"({"type":"turn.failed"})"}, Phase::question).verdict.reason,
            "a failure without a reason");
}

TEST(CodexDecoder, WithoutAnEndTheLastErrorIsNamed) {
  Decoded run = decode({R"({"type":"error","message":"Reconnecting... 1/2"})"}, Phase::question, 1);
  EXPECT_EQ(run.verdict.reason,
            "the agent ended without a result (exit code 1); its last error: Reconnecting... 1/2");
}

// What was said on the way is not the answer.
TEST(CodexDecoder, AMessageBeforeAToolIsNoAnswer) {
  const std::string said =
      R"({"type":"item.completed","item":{"id":"item_0","type":"agent_message","text":"I look."}})";
  const std::string started =
      R"({"type":"item.started","item":{"id":"item_1","type":"command_execution","command":"ls","status":"in_progress"}})";
  const std::string ended =
      R"({"type":"item.completed","item":{"id":"item_1","type":"command_execution","command":"ls","status":"completed"}})";
  const std::string done = R"({"type":"turn.completed","usage":{}})";
  EXPECT_FALSE(decode({said, started, ended, done}, Phase::question).verdict.ok);
  EXPECT_TRUE(decode({started, said, ended, done}, Phase::question).verdict.ok);
}

TEST(CodexDecoder, OtherErrorItemsAreWarnings) {
  Decoded run = decode(
      {R"({"type":"item.completed","item":{"id":"item_0","type":"error","message":"something is deprecated"}})",
       R"({"type":"item.completed","item":{"id":"item_1","type":"agent_message","text":"42"}})",
       R"({"type":"turn.completed","usage":{}})"},
      Phase::question);
  EXPECT_TRUE(run.verdict.ok) << run.verdict.reason;
  EXPECT_EQ(run.kinds(), (Texts{"warning", "message", "usage", "answer"}));
}

TEST(CodexDecoder, ForeignLinesAreSkippedAndCounted) {
  Texts lines = stream("codex-question");
  lines.insert(lines.begin(), {"WARNING: proceeding", "", "[1,2]", "{\"type\":", "\xff\xfe"});
  Decoded run = decode(lines, Phase::question);
  EXPECT_TRUE(run.verdict.ok) << run.verdict.reason;
  EXPECT_EQ(run.verdict.skipped_lines, 4U);
}

TEST(CodexDecoder, UnknownTypesAndWrongTypesSayNothing) {
  const Texts lines = {R"({"type":"brand_new"})",
                       R"({"type":7})",
                       R"({})",
                       R"({"type":"item.completed"})",
                       R"({"type":"item.completed","item":[1]})",
                       R"({"type":"item.updated","item":{"id":"item_0","type":"todo_list"}})",
                       R"({"type":"item.completed","item":{"id":"item_0","type":"todo_list","items":[]}})"};
  Decoded run = decode(lines, Phase::question);
  EXPECT_EQ(run.kinds(), Texts{});
  EXPECT_FALSE(run.verdict.ok);
}

TEST(CodexDecoder, EventsAndReasonsAreBounded) {
  const std::string big(1U << 20U, 'x');
  const Texts lines = {
      R"({"type":"item.completed","item":{"id":"i","type":"agent_message","text":")" + big + "\"}}",
      R"({"type":"item.started","item":{"id":"i","type":"command_execution","command":")" + big +
          R"(","status":"in_progress"}})",
      R"({"type":"item.completed","item":{"id":"i","type":"command_execution","aggregated_output":")" + big +
          R"(","status":"failed"}})",
      R"({"type":"turn.failed","error":{"message":")" + big + "\"}}"};
  Decoded run = decode(lines, Phase::implementation);
  ASSERT_EQ(run.events.size(), 4U);
  for (const AgentEvent& event : run.events) EXPECT_LE(event.data.size(), 200'000U) << event.kind;
  EXPECT_NE(run.events[1].data.find("\"input_text\""), std::string::npos);
  EXPECT_LE(run.verdict.reason.size(), 4096U);
}

}  // namespace
}  // namespace cofferdam::agent
