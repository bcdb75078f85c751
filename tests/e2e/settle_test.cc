// Settlement: deadlines, cancel, the supervisor's death. The result keeps the first cause and the exit
// status.
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>

#include "base/io.h"
#include "base/text.h"
#include "e2e/fixture.h"
#include "e2e/running.h"

namespace cofferdam::test {
namespace {

class Settle : public EndToEnd {
 protected:
  Running start(const std::string& id, const std::string& script) {
    return Running(
        world(), {"run", "--json", "--agent", "command", "--attempt-id", id, "--", "/bin/sh", "-c", script});
  }
  std::string printed_by(const std::string& id) const {
    return world().state() + "/attempts/" + id + "/stdout";
  }
};

TEST_P(Settle, DeadlineEndsWhatIgnoresTerm) {
  const std::string tail = random_hex(8);
  RunOutcome outcome =
      run_script("echo kept > kept.txt; exec bash -c 'trap \"\" TERM; exec -a stub$(printf born)-" + tail +
                     " sleep 600'",
                 {"--deadline", "2s", "--attempt-id", "late"});
  const std::string marker = "stubborn-" + tail;
  EXPECT_EQ(outcome.status.code, 4) << outcome.err;
  EXPECT_EQ(outcome.result->outcome, contract::Outcome::limit);
  EXPECT_EQ(outcome.result->cause.control, "deadline");
  EXPECT_TRUE(outcome.result->settlement.box_gone_at.has_value());
  EXPECT_TRUE(outcome.result->change.commit.has_value()) << "the work is kept";
  EXPECT_FALSE(outcome.result->change.ref.has_value());
  EXPECT_TRUE(processes_with(marker).empty());
}

TEST_P(Settle, TermIsACancelThatKeepsTheExitStatus) {
  Running running = start("terminated", "trap 'exit 42' TERM; echo ready; while :; do sleep 0.1; done");
  Running::wait_for(printed_by("terminated"), "ready");
  running.child().signal(SIGTERM);
  RunOutcome outcome = running.finish();
  EXPECT_EQ(outcome.status.code, 5) << outcome.err;
  ASSERT_TRUE(outcome.result.has_value());
  EXPECT_EQ(outcome.result->outcome, contract::Outcome::cancelled);
  EXPECT_EQ(outcome.result->process.exit_code, 42) << "the program's own end stands beside the cause";
  ASSERT_TRUE(outcome.result->cancel.has_value());
  EXPECT_EQ(outcome.result->cancel->by, "signal");
}

TEST_P(Settle, CancelVerbNamesItsReason) {
  Running running = start("by-verb", "echo ready; sleep 600");
  Running::wait_for(printed_by("by-verb"), "ready");
  RunOutcome cancel = world().cofferdam({"cancel", "by-verb", "--reason", "changed my mind"});
  EXPECT_EQ(cancel.status.code, 0) << cancel.err;
  RunOutcome outcome = running.finish();
  EXPECT_EQ(outcome.status.code, 5);
  ASSERT_TRUE(outcome.result.has_value());
  ASSERT_TRUE(outcome.result->cancel.has_value());
  EXPECT_EQ(outcome.result->cancel->by, "command");
  EXPECT_EQ(outcome.result->cancel->reason, "changed my mind");
  // Once it has ended there is nothing to cancel.
  EXPECT_EQ(world().cofferdam({"cancel", "by-verb"}).status.code, 3);
}

TEST_P(Settle, SecondCauseChangesNothing) {
  Running running = start("twice", "trap '' TERM; echo ready; sleep 600");
  Running::wait_for(printed_by("twice"), "ready");
  running.child().signal(SIGINT);
  running.child().signal(SIGTERM);
  RunOutcome outcome = running.finish();
  ASSERT_TRUE(outcome.result.has_value());
  ASSERT_TRUE(outcome.result->cancel.has_value());
  EXPECT_EQ(outcome.result->outcome, contract::Outcome::cancelled);
  EXPECT_EQ(outcome.result->cause.control, "cancel");
}

// The box and everything in it end with a supervisor that is killed.
TEST_P(Settle, SupervisorKilledEndsTheBox) {
  const std::string tail = random_hex(8);
  // Put together in the box, so that the supervisor's own command line does not hold it.
  const std::string marker = "orphan-" + tail;
  Running running = start("orphan", "(setsid bash -c 'trap \"\" TERM HUP; exec -a or$(printf phan)-" + tail +
                                        " sleep 600' &) ; echo ready; sleep 600");
  Running::wait_for(printed_by("orphan"), "ready");
  const auto start_bound = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (processes_with(marker).empty() && std::chrono::steady_clock::now() < start_bound) ::usleep(20'000);
  EXPECT_FALSE(processes_with(marker).empty()) << "the control: it runs while the supervisor does";
  running.child().signal(SIGKILL);
  ASSERT_TRUE(running.child().wait(std::chrono::seconds(30)));
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!processes_with(marker).empty() && std::chrono::steady_clock::now() < end) ::usleep(20'000);
  EXPECT_TRUE(processes_with(marker).empty());
  EXPECT_EQ(world().cofferdam({"recover"}).status.code, 0) << "and its storage with the recovery";
}

TEST_P(Settle, OutputFloodIsALimit) {
  world().write(world().config(), "[limits]\nstdout_bytes = 1000000\n");
  RunOutcome outcome = run_script("yes flood", {"--config", world().config(), "--attempt-id", "flood"});
  EXPECT_EQ(outcome.status.code, 4) << outcome.err;
  EXPECT_EQ(outcome.result->cause.control, "stdout");
  auto kept = read_file(printed_by("flood"), 1U << 24U);
  ASSERT_TRUE(kept);
  EXPECT_LE(kept->size(), 1000000U);
}

TEST_P(Settle, SignalOfTheProgramIsKept) {
  RunOutcome outcome = run_script("kill -SEGV $$");
  EXPECT_EQ(outcome.status.code, 1);
  EXPECT_EQ(outcome.result->process.signal, SIGSEGV);
  EXPECT_FALSE(outcome.result->process.exit_code.has_value());
}

COFFERDAM_FOR_BOTH_USERS(Settle);

}  // namespace
}  // namespace cofferdam::test
