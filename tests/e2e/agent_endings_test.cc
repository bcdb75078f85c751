// Agents that hang at the start, in the middle or at the end, and a supervisor that does: attacks.md, F1, F7
// to F9, G11. The real CLIs where they can be made to behave so, otherwise a program in Claude's place, which
// says so.
#include <signal.h>

#include "base/text.h"
#include "e2e/endings.h"

namespace cofferdam::test {
namespace {

using contract::Outcome;

// The stream of a fake agent: it begins, and answers.
constexpr const char* kBegin =
    R"(echo '{"type":"system","subtype":"init","claude_code_version":"2.1.197","model":"claude-sonnet-5"}')"
    "\n";
constexpr const char* kAnswer =
    R"(echo '{"type":"assistant","message":{"model":"claude-sonnet-5","content":[{"type":"text","text":"Because."}]}}'
echo '{"type":"result","subtype":"success","is_error":false,"result":"Because.","num_turns":1}')"
    "\n";

class AgentEndings : public Ending {};

// F1: standard input of the tool is a pipe that nobody ever closes. The agents' own is a file at its end.
TEST_P(AgentEndings, NobodyWaitsForStandardInput) {
  const std::pair<const char*, const char*> agents[] = {{"claude", "claude-sonnet-5"}, {"codex", "gpt-5.5"}};
  for (const auto& [name, model] : agents) {
    if (!need_agent(name)) return;
  }
  use_standin(R"({"turns":[{"blocks":[{"text":"Because."}]}]})");
  auto open = make_pipe();
  ASSERT_TRUE(open);
  for (const auto& [name, model] : agents) {
    SCOPED_TRACE(name);
    Running running(
        world(), {"ask", "--json", "--config", world().config(), "--agent", name, "--model", model, "Why?"},
        open->read.get());
    RunOutcome outcome = running.finish();
    ASSERT_TRUE(outcome.result.has_value()) << outcome.err;
    EXPECT_EQ(outcome.result->outcome, Outcome::completed) << outcome.err;
  }
  Running command(world(), {"run", "--json", "--agent", "command", "--", "/bin/sh", "-c", "cat; echo ended"},
                  open->read.get());
  RunOutcome outcome = command.finish();
  ASSERT_TRUE(outcome.result.has_value()) << outcome.err;
  EXPECT_EQ(outcome.result->outcome, Outcome::completed) << outcome.err;
  EXPECT_EQ(printed(outcome), "ended\n");
}

// F7: it answers and never exits. The real CLI cannot be made to, so another program is in its place.
TEST_P(AgentEndings, AnAnswerWithoutAnExitIsKeptAndBounded) {
  use_fake_agent(std::string(kBegin) + kAnswer + "sleep 600\n", "[deadlines]\nidle = \"2s\"\n");
  RunOutcome hung = asked_once("hung");
  expect_settled(hung);
  EXPECT_EQ(hung.result->outcome, Outcome::limit) << hung.err;
  EXPECT_EQ(hung.result->cause.control, "idle");
  EXPECT_NE(hung.result->cause.detail.find("has answered but did not exit"), std::string::npos);
  EXPECT_EQ(hung.result->answer, "Because.");
  EXPECT_TRUE(hung.result->answered_at.has_value());
  EXPECT_TRUE(has_event("hung", "answered"));

  use_fake_agent(std::string(kBegin) + kAnswer, "[deadlines]\nidle = \"2s\"\n");
  RunOutcome fine = asked_once("exits");
  EXPECT_EQ(fine.result->outcome, Outcome::completed) << "the control: " << fine.err;
  EXPECT_EQ(fine.result->answer, "Because.");
}

// F8: not one byte. Another program is in the CLI's place.
TEST_P(AgentEndings, SilenceFromTheStartHasADeadline) {
  use_fake_agent("sleep 600\n", "[deadlines]\nfirst_output = \"2s\"\n");
  RunOutcome silent = asked_once("silent");
  expect_settled(silent);
  EXPECT_EQ(silent.result->outcome, Outcome::limit) << silent.err;
  EXPECT_EQ(silent.result->cause.control, "first-output");
  EXPECT_FALSE(silent.result->answered_at.has_value());
  use_fake_agent(std::string(kBegin) + "sleep 3\n" + kAnswer, "[deadlines]\nfirst_output = \"2s\"\n");
  EXPECT_EQ(asked_once("speaks").result->outcome, Outcome::completed)
      << "the control: it ends with the first byte";
}

// F9: the vendor stalls in the middle of an answer, with the socket open. The real CLI waits with it.
TEST_P(AgentEndings, AStalledStreamIsIdle) {
  if (!need_agent("claude")) return;
  use_standin(
      R"({"turns":[{"stall":"mid-stream","blocks":[{"text":"These are words enough for a delta."}]}]})",
      kTestKey, "[deadlines]\nidle = \"8s\"\n");
  RunOutcome outcome = asked_once("stalled");
  expect_settled(outcome);
  EXPECT_EQ(outcome.result->outcome, Outcome::limit) << outcome.err;
  EXPECT_EQ(outcome.result->cause.control, "idle");
  EXPECT_NE(outcome.result->cause.detail.find("still open"), std::string::npos)
      << "what it waited for is said";
}

// It ends with 0 and has said nothing.
TEST_P(AgentEndings, NothingSaidIsNoSuccess) {
  use_fake_agent("exit 0\n");
  RunOutcome outcome = asked_once("mute");
  expect_settled(outcome);
  EXPECT_EQ(outcome.result->outcome, Outcome::failed);
  EXPECT_EQ(outcome.result->process.exit_code, 0);
}

// The gateway does not start: the box that was waiting for it is gone before the attempt is settled.
TEST_P(AgentEndings, ABoxThatNeverRanIsGoneToo) {
  use_fake_agent(std::string(kBegin) + kAnswer);
  configure("[vendors.anthropic]\nupstream = \"" + standin().url() +
            "\"\nca_bundle = \"/dev/null\"\n[agents]\ndir = \"" + world().root() + "/agents\"\n");
  RunOutcome outcome = asked_once("no-gateway");
  expect_settled(outcome);
  EXPECT_EQ(outcome.result->cause.control, "egress") << outcome.err;
  EXPECT_FALSE(has_event("no-gateway", "started"));
  EXPECT_TRUE(has_event("no-gateway", "box-gone"));
}

// The bounds of the event stream. Another program is in the CLI's place.
TEST_P(AgentEndings, LinesAndEventsOfAStreamAreBounded) {
  const std::string limits = "[limits]\nline_bytes = 4096\nevents = 5\n";
  use_fake_agent(std::string(kBegin) + "head -c 5000 /dev/zero | tr '\\0' x; echo; sleep 600\n", limits);
  RunOutcome line = asked_once("line");
  expect_settled(line);
  EXPECT_EQ(line.result->cause.control, "line") << line.err;
  EXPECT_EQ(line.result->output.dropped_lines, 1U);
  use_fake_agent(std::string(kBegin) + "while :; do " + kAnswer + "done\n", limits);
  RunOutcome events = asked_once("events");
  expect_settled(events);
  EXPECT_EQ(events.result->cause.control, "events") << events.err;
  EXPECT_GT(events.result->output.events, 5U);
  std::size_t recorded = 0;
  for (const contract::Event& event : events_of("events")) recorded += event.type == "agent" ? 1U : 0U;
  EXPECT_EQ(recorded, 5U);
  use_fake_agent(std::string(kBegin) + kAnswer, limits);
  EXPECT_EQ(asked_once("within").result->outcome, Outcome::completed) << "the control";
  RunOutcome command = run_script("head -c 5000 /dev/zero | tr '\\0' x", {"--config", world().config()});
  EXPECT_EQ(command.result->outcome, Outcome::completed) << "the lines of a command are only text";
}

std::vector<std::string> stat_fields(int pid) {
  auto text = read_file("/proc/" + std::to_string(pid) + "/stat", 4096);
  if (!text || text->rfind(") ") == std::string::npos) return {};
  return split(text->substr(text->rfind(") ") + 2), ' ');
}

// 'Z' for what has ended and is not reaped, '-' for what is not there.
char state_of(int pid) {
  const std::vector<std::string> fields = stat_fields(pid);
  return fields.empty() || fields[0].empty() ? '-' : fields[0][0];
}

int child_with(int parent, const std::string& word) {
  for (int pid : processes_with(word)) {
    const std::vector<std::string> fields = stat_fields(pid);
    if (fields.size() > 1 && fields[1] == std::to_string(parent)) return pid;
  }
  return -1;
}

// G11: the supervisor is stopped past the deadline. Box and gateway end by themselves.
TEST_P(AgentEndings, AStoppedSupervisorKeepsNothingAlive) {
  const std::string tail = random_hex(8);
  const std::string marker = "outlives-" + tail;
  use_fake_agent(std::string(kBegin) + "trap '' TERM\nexec -a out$(printf lives)-" + tail + " sleep 600\n",
                 "[deadlines]\ngrace = \"1s\"\n");
  Running running(world(), ask("wedged", {"--deadline", "20s"}));
  ASSERT_TRUE(comes_true([&] { return !processes_with(marker).empty(); }));
  const int supervisor = running.child().pid();
  const int gateway = child_with(supervisor, "internal-gateway");
  ASSERT_GT(gateway, 0);
  EXPECT_NE(state_of(gateway), 'Z') << "the control: it serves";
  running.child().signal(SIGSTOP);
  ASSERT_TRUE(comes_true([&] { return state_of(supervisor) == 'T'; }));
  EXPECT_TRUE(comes_true([&] { return processes_with(marker).empty(); }));
  EXPECT_TRUE(comes_true([&] { return state_of(gateway) == 'Z'; }));
  EXPECT_EQ(state_of(supervisor), 'T') << "all that without it";
  running.child().signal(SIGCONT);
  RunOutcome outcome = running.finish();
  expect_settled(outcome);
  EXPECT_EQ(outcome.result->outcome, Outcome::limit) << outcome.err;
  EXPECT_EQ(outcome.result->cause.control, "deadline");
}

COFFERDAM_FOR_BOTH_USERS(AgentEndings);

}  // namespace
}  // namespace cofferdam::test
