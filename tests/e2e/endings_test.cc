// Programs that do not end as they should, or take more than they may: attacks.md, F2 to F25. Each settles in
// its bound, and the kernel says that its box is gone.
#include <signal.h>

#include <cstdlib>
#include <future>

#include "base/text.h"
#include "e2e/endings.h"

namespace cofferdam::test {
namespace {

using contract::Outcome;

class Endings : public Ending {
 protected:
  RunOutcome run(const std::string& id, const std::string& script, std::vector<std::string> more = {}) {
    more.insert(more.end(), {"--config", world().config(), "--attempt-id", id});
    return run_script(script, more);
  }
};

// F2, F6: somebody in the background holds the pipes; the result does not wait for that.
TEST_P(Endings, AWriterInTheBackgroundHoldsNothingUp) {
  configure("");
  RunOutcome held = run("held", "(setsid sleep 600 &); echo said");
  expect_settled(held);
  EXPECT_EQ(held.result->outcome, Outcome::completed) << held.err;
  EXPECT_TRUE(held.result->settlement.killed);
  EXPECT_EQ(printed(held), "said\n");
  RunOutcome alone = run("alone", "echo said");
  EXPECT_FALSE(alone.result->settlement.killed) << "the control: nobody was left";
}

// F5: the parent goes at TERM, its child does not.
TEST_P(Endings, AGrandchildThatIgnoresTermGoesToo) {
  const std::string tail = random_hex(8);
  const std::string marker = "grandchild-" + tail;
  Running running(world(),
                  {"run", "--json", "--agent", "command", "--attempt-id", "family", "--", "/bin/sh", "-c",
                   "(setsid bash -c 'trap \"\" TERM HUP; exec -a grand$(printf child)-" + tail +
                       " sleep 600' &); trap 'exit 0' TERM; echo ready; while :; do sleep 0.1; done"});
  Running::wait_for(printed_by("family"), "ready");
  EXPECT_TRUE(comes_true([&] { return !processes_with(marker).empty(); })) << "the control: it runs";
  running.child().signal(SIGTERM);
  RunOutcome outcome = running.finish();
  expect_settled(outcome);
  EXPECT_EQ(outcome.result->outcome, Outcome::cancelled);
  EXPECT_EQ(outcome.result->process.exit_code, 0);
  EXPECT_TRUE(outcome.result->settlement.killed);
  EXPECT_TRUE(processes_with(marker).empty());
}

// F11: by the time at which an impatient caller kills the tool, the box is gone.
TEST_P(Endings, TheBoxGoesBeforeTheToolIsKilled) {
  const std::string tail = random_hex(8);
  const std::string marker = "impatient-" + tail;
  Running running(
      world(),
      {"run", "--json", "--agent", "command", "--attempt-id", "impatient", "--", "/bin/sh", "-c",
       "echo ready; exec bash -c 'trap \"\" TERM; exec -a impa$(printf tient)-" + tail + " sleep 600'"});
  Running::wait_for(printed_by("impatient"), "ready");
  EXPECT_TRUE(comes_true([&] { return !processes_with(marker).empty(); }));
  running.child().signal(SIGTERM);
  EXPECT_TRUE(comes_true([&] { return has_event("impatient", "box-gone"); }));
  EXPECT_TRUE(processes_with(marker).empty());
  running.child().signal(SIGKILL);
  running.finish();
  EXPECT_EQ(world().cofferdam({"recover"}).status.code,
            0);  // the kill can come before the storage was given back
}

// F10 and the like: nothing of it has any effect on how long the end takes, or on whether it comes.
TEST_P(Endings, HostileEndingsSettle) {
  configure("[deadlines]\ngrace = \"500ms\"\n[limits]\npids = 64\n");
  const std::pair<const char*, const char*> cases[] = {
      {"ignores-term", "trap '' TERM; while :; do :; done"},
      {"double-fork", "(setsid sh -c '(setsid sleep 600 &) ; sleep 600' &); sleep 600"},
      {"stops-itself", "kill -STOP $$; sleep 600"},
      {"stops-all", "kill -STOP -1; kill -STOP $$; sleep 600"},
      {"fork-bomb", "b() { b | b & }; b; exec sleep 600"},
  };
  for (const auto& [id, script] : cases) {
    SCOPED_TRACE(id);
    RunOutcome outcome = run(id, script, {"--deadline", "3s"});
    expect_settled(outcome);
    EXPECT_EQ(outcome.result->outcome, Outcome::limit) << outcome.err;
    EXPECT_LE(outcome.result->resources.peak_pids, 64U);
  }
  EXPECT_EQ(run("control", "exit 0", {"--deadline", "60s"}).result->outcome, Outcome::completed);
}

// F20: one attempt floods, another does not notice; head and tail are kept, the rest is counted.
TEST_P(Endings, AFloodIsKeptAtBothEndsAndHurtsNobody) {
  configure("[limits]\nstdout_bytes = 1073741824\n");
  auto flood = std::async(std::launch::async, [&] {
    return world().cofferdam({"run", "--json", "--config", world().config(), "--agent", "command",
                              "--attempt-id", "flood", "--", "/bin/sh", "-c",
                              "echo first; head -c 600000000 /dev/zero | tr '\\0' x; echo; echo last"});
  });
  for (int i = 0; i < 3; ++i) {
    RunOutcome beside = run("beside-" + std::to_string(i), "echo fine > made.txt; echo said");
    EXPECT_EQ(beside.result->outcome, Outcome::completed) << beside.err;
    EXPECT_EQ(printed(beside), "said\n");
  }
  RunOutcome outcome = flood.get();
  ASSERT_TRUE(outcome.result.has_value()) << outcome.err;
  EXPECT_EQ(outcome.result->outcome, Outcome::completed) << outcome.err;
  const contract::OutputFacts& output = outcome.result->output;
  EXPECT_EQ(output.stdout_bytes, 600'000'012U);
  EXPECT_EQ(output.dropped_bytes, 600'000'012U - (2U << 20U));
  auto head = read_file(printed_by("flood"), 1U << 21U);
  auto tail = read_file(printed_by("flood") + ".tail", 1U << 21U);
  ASSERT_TRUE(head && tail);
  EXPECT_EQ(head->size(), 1U << 20U);
  EXPECT_EQ(tail->size(), 1U << 20U);
  EXPECT_TRUE(starts_with(*head, "first\nxxx"));
  EXPECT_EQ(tail->substr(tail->size() - 7), "x\nlast\n");
}

TEST_P(Endings, EachStreamHasALimitOfItsOwn) {
  configure("[limits]\nstdout_bytes = 1000000\nstderr_bytes = 1000\n");
  RunOutcome errors = run("errors", "yes flood >&2");
  expect_settled(errors);
  EXPECT_EQ(errors.result->outcome, Outcome::limit);
  EXPECT_EQ(errors.result->cause.control, "stderr");
  EXPECT_GT(errors.result->output.stderr_bytes, 1000U);
  RunOutcome fine = run("fine", "head -c 5000 /dev/zero");
  EXPECT_EQ(fine.result->outcome, Outcome::completed) << "the control: as much on the other stream";
}

// F23, F25: whoever asks for a plan or a review gets one, and the tree is as it was.
TEST_P(Endings, ReadOnlyPhasesCannotWrite) {
  const std::string tree = world().git({"rev-parse", "HEAD^{tree}"});
  for (const char* verb : {"plan", "review", "ask"}) {
    SCOPED_TRACE(verb);
    RunOutcome outcome = world().cofferdam({verb, "--json", "--agent", "command", "--", "/bin/sh", "-c",
                                            "echo no > src/a.txt; echo no > new.txt; rm README.md; git "
                                            "commit -qam no; git push; touch .git/x; exit 0"});
    ASSERT_TRUE(outcome.result.has_value()) << outcome.err;
    EXPECT_EQ(outcome.result->change.tree, tree);
    EXPECT_FALSE(outcome.result->change.ref.has_value());
    auto said = read_file(world().state() + "/attempts/" + outcome.result->attempt_id + "/stderr", 1U << 20U);
    ASSERT_TRUE(said);
    EXPECT_NE(said->find("new.txt: Read-only file system"), std::string::npos) << *said;
  }
  RunOutcome allowed = run_script("echo yes > new.txt");
  EXPECT_TRUE(allowed.result->change.ref.has_value()) << "the control: an implementation may";
}

// F24: what is writable in every phase is the box's own and goes with it.
TEST_P(Endings, ScratchIsTheBoxsOwn) {
  const std::string name = "/tmp/scratch-" + random_hex(8);
  for (int i = 0; i < 2; ++i) {
    RunOutcome outcome =
        world().cofferdam({"review", "--json", "--agent", "command", "--", "/bin/sh", "-c",
                           "test ! -e " + name + " && echo here > " + name + " && cat " + name});
    ASSERT_TRUE(outcome.result.has_value()) << outcome.err;
    EXPECT_EQ(outcome.result->process.exit_code, 0) << "writable, and nothing of the attempt before is there";
    EXPECT_EQ(printed(outcome), "here\n");
    EXPECT_NE(::access(name.c_str(), F_OK), 0);
  }
}

// An attempt that fails before there is a box is settled like any other.
TEST_P(Endings, WhatNeverStartedIsSettledToo) {
  world().commit({{"big.txt", std::string(300'000, 'x')}}, "too large");
  configure("[workspace]\ntree = \"checkout\"\n[limits]\nwork_bytes = 65536\n");
  RunOutcome outcome = run("small", "exit 0");
  EXPECT_EQ(outcome.result->outcome, Outcome::refused) << outcome.err;
  EXPECT_FALSE(has_event("small", "started"));
  EXPECT_FALSE(has_event("small", "box-gone"));
  const std::vector<contract::Event> events = events_of("small");
  ASSERT_GE(events.size(), 2U);
  EXPECT_EQ(events[events.size() - 2].type, "settled");
  EXPECT_EQ(events.back().type, "finished");
  configure("[workspace]\ntree = \"checkout\"\n[limits]\nwork_bytes = 1048576\n");
  EXPECT_EQ(run("large", "exit 0").result->outcome, Outcome::completed) << "the control";
}

COFFERDAM_FOR_BOTH_USERS(Endings);

class Amounts : public Endings {};

TEST_P(Amounts, MemoryOfAllProgramsTogether) {
  configure("[limits]\nmemory_bytes = 67108864\n");
  const std::string hold = "x=$(head -c 20000000 /dev/zero | tr '\\0' x); sleep 600";
  RunOutcome outcome = run("greedy", "for i in 1 2 3 4 5 6 7 8; do (" + hold + ") & done; wait");
  expect_settled(outcome);
  EXPECT_EQ(outcome.result->outcome, Outcome::limit) << outcome.err;
  EXPECT_EQ(outcome.result->cause.control, "memory");
  EXPECT_NE(outcome.result->cause.detail.find("the limit is 64.0 MiB"), std::string::npos);
  EXPECT_GT(outcome.result->resources.peak_memory, 67108864U);
  configure("[limits]\nmemory_bytes = 1073741824\n");
  RunOutcome fine = run("modest", "x=$(head -c 200000000 /dev/zero | tr '\\0' x); echo ${#x}");
  EXPECT_EQ(fine.result->outcome, Outcome::completed) << fine.err;
  EXPECT_GT(fine.result->resources.peak_memory, 200'000'000U);
}

// Ten processes with the same 30 MB are no 300 MB.
TEST_P(Amounts, SharedPagesCountOnce) {
  configure("[limits]\nmemory_bytes = 134217728\n");
  RunOutcome outcome =
      run("shared",
          "x=$(head -c 30000000 /dev/zero | tr '\\0' x); for i in 1 2 3 4 5 6 7 8 9 10; do (sleep 3; :) & "
          "done; wait; echo ${#x}");
  EXPECT_EQ(outcome.result->outcome, Outcome::completed) << outcome.err;
  EXPECT_LT(outcome.result->resources.peak_memory, 134217728U);
}

// The bound is the kernel's, and is said to have been met.
TEST_P(Amounts, ProcessesAreBounded) {
  // It hears TERM and says all the same how far it came.
  const std::string forks =
      "python3 -c '\nimport os, signal, time\nn = 0\ntold = []\n"
      "signal.signal(signal.SIGTERM, lambda *_: told.append(1))\n"
      "try:\n  while n < 100:\n    if os.fork() == 0: time.sleep(600)\n    n += 1\n"
      "except OSError: pass\nprint(n, flush=True)\n";
  configure("[deadlines]\ngrace = \"30s\"\n[limits]\npids = 40\n");
  RunOutcome outcome = run("many", forks + "while not told: time.sleep(0.05)'");
  expect_settled(outcome);
  EXPECT_EQ(outcome.result->outcome, Outcome::limit) << outcome.err;
  EXPECT_EQ(outcome.result->cause.control, "pids");
  EXPECT_EQ(outcome.result->resources.peak_pids, 40U);
  const int made = std::atoi(printed(outcome).c_str());
  EXPECT_GE(made, 30);
  EXPECT_LT(made, 40) << "the shell and python itself count too";
  configure("[limits]\npids = 400\n");
  RunOutcome fine = run("few", forks + "'");
  EXPECT_EQ(fine.result->outcome, Outcome::completed) << fine.err;
  EXPECT_EQ(printed(fine), "100\n");
}

// A full storage is the program's to deal with; only when it fails, that is why.
TEST_P(Amounts, AFullStorageIsTheCauseOfAFailure) {
  configure("[limits]\nwork_bytes = 4194304\nwork_inodes = 200\nscratch_bytes = 4194304\n");
  const std::pair<const char*, const char*> cases[] = {
      {"work-bytes", "head -c 8000000 /dev/zero > big"},
      {"work-inodes", "for i in $(seq 400); do touch f$i || exit 1; done"},
      {"scratch", "head -c 8000000 /dev/zero > /tmp/big"},
  };
  for (const auto& [control, script] : cases) {
    SCOPED_TRACE(control);
    RunOutcome failed = run(std::string("full-") + control, script);
    expect_settled(failed);
    EXPECT_EQ(failed.result->outcome, Outcome::limit) << failed.err;
    EXPECT_EQ(failed.result->cause.control, control);
    EXPECT_EQ(failed.result->process.exit_code, 1);
    RunOutcome made_room =
        run(std::string("room-") + control, std::string("(") + script + "); rm -rf big f* /tmp/big; exit 0");
    EXPECT_EQ(made_room.result->outcome, Outcome::completed) << made_room.err;
  }
}

COFFERDAM_FOR_BOTH_USERS(Amounts);

}  // namespace
}  // namespace cofferdam::test
