// Settlement: deadlines, cancel, the supervisor's death. The result keeps the first cause and the exit
// status.
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>

#include "base/io.h"
#include "base/text.h"
#include "e2e/fixture.h"

namespace cofferdam::test {
namespace {

// One attempt in the background, to be cancelled or killed.
class Running {
 public:
  Running(const World& world, std::vector<std::string> args) {
    auto out = make_pipe();
    auto err = make_pipe();
    if (!out || !err) std::abort();
    SpawnOptions options = world.cofferdam_options(args);
    options.fds = {{out->write.get(), 1}, {err->write.get(), 2}};
    options.die_with_parent = false;
    auto child = spawn(options);
    if (!child) std::abort();
    child_ = std::move(*child);
    out_ = std::move(out->read);
    err_ = std::move(err->read);
  }
  Child& child() { return child_; }
  // Until the attempt's own standard output file holds `words`.
  static void wait_for(const std::string& file, const std::string& words) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (std::chrono::steady_clock::now() < end) {
      auto text = read_file(file, 1U << 20U);
      if (text && text->find(words) != std::string::npos) return;
      ::usleep(20'000);  // a poll of a condition, not a wait for time to pass
    }
    FAIL() << file << " never held " << words;
  }
  RunOutcome finish() {
    RunOutcome outcome;
    auto status = child_.wait(std::chrono::seconds(120));
    EXPECT_TRUE(status);
    if (status) outcome.status = *status;
    if (auto text = read_to_end(out_.get(), 64U << 20U)) outcome.out = *text;
    if (auto text = read_to_end(err_.get(), 64U << 20U)) outcome.err = *text;
    std::vector<std::string> lines = split(trim(outcome.out), '\n');
    if (!lines.empty()) {
      if (auto result = contract::decode_result(lines.back())) outcome.result = *result;
    }
    return outcome;
  }

 private:
  Child child_;
  UniqueFd out_;
  UniqueFd err_;
};

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

// The box, its storage and everything in it end with a supervisor that is killed.
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
}

TEST_P(Settle, OutputFloodIsALimit) {
  world().write(world().config(), "[limits]\noutput_bytes = 1000000\n");
  RunOutcome outcome = run_script("yes flood", {"--config", world().config(), "--attempt-id", "flood"});
  EXPECT_EQ(outcome.status.code, 4) << outcome.err;
  EXPECT_EQ(outcome.result->cause.control, "output");
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
