// The first cause wins, whatever else happens and in whatever order; every fact keeps its own time.
#include "settle/settlement.h"

#include <gtest/gtest.h>

#include <array>
#include <random>
#include <vector>

namespace cofferdam::settle {
namespace {

using contract::Outcome;
using contract::ResultRecord;

enum class Act { exit, deadline, cancel, limit, gone };
constexpr std::array kActs = {Act::exit, Act::deadline, Act::cancel, Act::limit, Act::gone};

const char* name_of(Act act) {
  constexpr std::array kNames = {"exit", "deadline", "cancel", "limit", "gone"};
  return kNames.at(static_cast<std::size_t>(act));
}

// The rules of design.md section 5, as simply as they can be said.
struct Model {
  std::optional<Act> first;
  std::int64_t first_ms = 0;
  std::optional<std::int64_t> exit_ms;
  std::optional<std::int64_t> cancel_ms;
  std::optional<std::int64_t> gone_ms;

  // True when the act asks for the end of the box: the first cause, and not the program's own end.
  bool apply(Act act, std::int64_t ms) {
    auto once = [&](std::optional<std::int64_t>* fact) {
      if (!fact->has_value()) *fact = ms;
    };
    if (act == Act::exit) once(&exit_ms);
    if (act == Act::cancel) once(&cancel_ms);
    if (act == Act::gone) once(&gone_ms);
    if (act == Act::gone || first.has_value()) return false;
    first = act;
    first_ms = ms;
    return act != Act::exit;
  }
  Outcome outcome() const {
    if (!first.has_value()) return Outcome::setup_failed;
    if (*first == Act::exit) return Outcome::failed;
    return *first == Act::cancel ? Outcome::cancelled : Outcome::limit;
  }
  std::string control() const { return first.has_value() ? name_of(*first) : ""; }
};

ExitStatus exit_code(int code) {
  ExitStatus status;
  status.code = code;
  return status;
}

bool apply(Settlement* settlement, Act act, std::int64_t ms) {
  const Timestamp at{ms};
  switch (act) {
    case Act::exit:
      settlement->exited(exit_code(static_cast<int>(ms % 256)), at);
      return false;
    case Act::deadline:
      return settlement->end(Outcome::limit, "deadline", "30 minutes", at);
    case Act::cancel:
      return settlement->cancel("signal", "TERM", at);
    case Act::limit:
      return settlement->end(Outcome::limit, "limit", "64 MiB of output", at);
    case Act::gone:
      settlement->box_gone(ms % 2 == 0, at);
      return false;
  }
  return false;
}

ResultRecord record_of(const Settlement& settlement) {
  ResultRecord result;
  settlement.record(&result);
  return result;
}

void expect_equal(const ResultRecord& result, const Model& model) {
  auto ms = [](const std::optional<Timestamp>& at) {
    return at.has_value() ? std::optional(at->ms) : std::nullopt;
  };
  EXPECT_EQ(result.outcome, model.outcome());
  EXPECT_EQ(result.cause.control, model.control());
  if (model.first.has_value()) {
    EXPECT_EQ(result.cause.at.ms, model.first_ms);
  }
  EXPECT_EQ(ms(result.process.ended_at), model.exit_ms);
  EXPECT_EQ(result.process.exit_code.has_value(), model.exit_ms.has_value());
  if (model.exit_ms.has_value()) {
    EXPECT_EQ(result.process.exit_code, *model.exit_ms % 256);
  }
  EXPECT_EQ(result.cancel.has_value(), model.cancel_ms.has_value());
  if (result.cancel.has_value()) {
    EXPECT_EQ(result.cancel->requested_at.ms, *model.cancel_ms);
  }
  EXPECT_EQ(ms(result.settlement.box_gone_at), model.gone_ms);
  EXPECT_EQ(result.settlement.killed, model.gone_ms.has_value() && *model.gone_ms % 2 == 0);
  std::int64_t took = 0;
  if (model.first.has_value() && model.gone_ms.has_value() && *model.gone_ms > model.first_ms)
    took = *model.gone_ms - model.first_ms;
  EXPECT_EQ(result.settlement.took_ms, static_cast<std::uint64_t>(took));
}

void run(const std::vector<Act>& acts) {
  std::string trace;
  for (Act act : acts) trace += std::string(name_of(act)) + " ";
  SCOPED_TRACE(trace);
  Settlement settlement;
  Model model;
  std::int64_t ms = 1'000;
  for (Act act : acts) {
    ms += 7;
    EXPECT_EQ(apply(&settlement, act, ms), model.apply(act, ms));
    EXPECT_EQ(settlement.has_cause(), model.first.has_value());
    EXPECT_EQ(settlement.exited(), model.exit_ms.has_value());
    expect_equal(record_of(settlement), model);
  }
}

TEST(Settlement, NothingHasHappened) {
  run({});
  EXPECT_EQ(Settlement().outcome(), Outcome::setup_failed);
}

TEST(Settlement, AllPairs) {
  for (Act first : kActs) {
    run({first});
    for (Act second : kActs) run({first, second});
  }
}

TEST(Settlement, AThousandRandomSequences) {
  std::mt19937 random(20261130);
  for (int round = 0; round < 1000; ++round) {
    std::vector<Act> acts;
    for (std::size_t i = 1 + random() % 12; i > 0; --i) acts.push_back(kActs.at(random() % kActs.size()));
    run(acts);
    if (HasFailure()) FAIL() << "round " << round;
  }
}

// conclude() speaks for the agent, and only when the agent's own end was the first cause.
TEST(Settlement, TheAgentsAccountCountsOnlyAfterItsOwnExit) {
  for (Act first : kActs) {
    SCOPED_TRACE(name_of(first));
    for (bool ok : {true, false}) {
      Settlement settlement;
      apply(&settlement, first, 10);
      apply(&settlement, Act::exit, 20);
      const ResultRecord before = record_of(settlement);
      settlement.conclude(ok, "the agent reported an error");
      const ResultRecord after = record_of(settlement);
      if (before.cause.control == "exit") {
        EXPECT_EQ(after.outcome, ok ? Outcome::completed : Outcome::failed);
        EXPECT_EQ(after.cause.control, ok ? "exit" : "agent");
        EXPECT_EQ(after.cause.at.ms, before.cause.at.ms);
      } else {
        EXPECT_EQ(after.outcome, before.outcome);
        EXPECT_EQ(after.cause.control, before.cause.control);
        EXPECT_EQ(after.cause.detail, before.cause.detail);
      }
    }
  }
}

TEST(Settlement, ConcludingWithoutACauseIsNothing) {
  Settlement settlement;
  settlement.conclude(true, "");
  EXPECT_FALSE(settlement.has_cause());
  EXPECT_EQ(settlement.outcome(), Outcome::setup_failed);
}

// A completed run can be taken back, once, by what comes after it; nothing else can.
TEST(Settlement, OnlyACompletedRunCanBeDistrusted) {
  Settlement settlement;
  apply(&settlement, Act::exit, 10);
  settlement.distrust("publication", "too early", Timestamp{11});
  EXPECT_EQ(record_of(settlement).cause.control, "exit") << "failed until the account is heard";
  settlement.conclude(true, "");
  settlement.publication_failed("the ref moved", Timestamp{30});
  EXPECT_EQ(settlement.outcome(), Outcome::failed);
  EXPECT_EQ(record_of(settlement).cause.control, "publication");
  settlement.distrust("schema", "later", Timestamp{40});
  EXPECT_EQ(record_of(settlement).cause.control, "publication") << "the first to take it back stays";
  settlement.conclude(true, "");
  EXPECT_EQ(settlement.outcome(), Outcome::failed) << "it does not come back";
  for (Act first : {Act::deadline, Act::cancel, Act::limit}) {
    Settlement other;
    apply(&other, first, 10);
    other.distrust("publication", "no", Timestamp{20});
    EXPECT_EQ(record_of(other).cause.control, name_of(first));
  }
}

TEST(Settlement, AStaleContextRefusesOnlyWhatWasCompleted) {
  Settlement settlement;
  apply(&settlement, Act::exit, 10);
  settlement.stale("too early", Timestamp{11});
  EXPECT_EQ(settlement.outcome(), Outcome::failed) << "nothing was completed yet";
  settlement.conclude(true, "");
  settlement.stale("version 4", Timestamp{12});
  EXPECT_EQ(settlement.outcome(), Outcome::refused);
  contract::ResultRecord result;
  settlement.record(&result);
  EXPECT_EQ(result.cause.control, "stale-context");
  EXPECT_TRUE(result.process.exit_code.has_value()) << "the program's own end stands beside it";
}

TEST(Settlement, ASignalIsKeptAsASignal) {
  Settlement settlement;
  ExitStatus status;
  status.signal = 9;
  settlement.started(Timestamp{5});
  settlement.exited(status, Timestamp{10});
  ResultRecord result = record_of(settlement);
  EXPECT_EQ(result.process.signal, 9);
  EXPECT_EQ(result.process.exit_code, std::nullopt);
  EXPECT_EQ(result.process.started_at, Timestamp{5});
  EXPECT_EQ(result.cause.detail, "signal 9");
}

// The caller's words stay; without any, who cancelled is said.
TEST(Settlement, CancelSaysWhoAndWhy) {
  Settlement silent;
  EXPECT_TRUE(silent.cancel("command", "", Timestamp{1}));
  EXPECT_FALSE(silent.cancel("signal", "again", Timestamp{2})) << "the second one asks for nothing";
  ResultRecord result = record_of(silent);
  EXPECT_EQ(result.cause.detail, "cancelled by command");
  EXPECT_EQ(result.cancel->by, "command");
  EXPECT_EQ(result.cancel->reason, "");
}

// A clock that was set back does not make an absurd duration.
TEST(Settlement, TimeThatRunsBackwardsIsZero) {
  Settlement settlement;
  settlement.exited(exit_code(0), Timestamp{1000});
  settlement.box_gone(false, Timestamp{400});
  EXPECT_EQ(record_of(settlement).settlement.took_ms, 0U);
}

TEST(Settlement, ARemarkStandsBehindTheCause) {
  Settlement failed;
  failed.exited(exit_code(1), Timestamp{1});
  failed.conclude(false, "no more tries");
  failed.remark("");
  EXPECT_EQ(record_of(failed).cause.detail, "no more tries");
  failed.remark("the last request: 429");
  EXPECT_EQ(record_of(failed).cause.detail, "no more tries (the last request: 429)");
  Settlement late;
  late.end(Outcome::limit, "deadline", "30 minutes", Timestamp{1});
  late.remark("still open");
  EXPECT_EQ(record_of(late).cause.detail, "30 minutes (still open)");
  EXPECT_EQ(record_of(late).cause.control, "deadline");

  // What nobody needs an explanation for.
  Settlement completed;
  completed.exited(exit_code(0), Timestamp{1});
  completed.conclude(true, "");
  completed.remark("the last request: 429");
  EXPECT_EQ(record_of(completed).cause.detail.find("429"), std::string::npos);
  Settlement cancelled;
  cancelled.cancel("command", "superseded", Timestamp{1});
  cancelled.remark("still open");
  EXPECT_EQ(record_of(cancelled).cause.detail, "superseded");
  Settlement nothing;
  nothing.remark("still open");
  EXPECT_EQ(record_of(nothing).cause.detail, "");
}

// A full storage explains a failure and nothing else.
TEST(Settlement, AFullStorageIsTheReasonOfAFailureOnly) {
  Settlement failed;
  failed.storage_full("work-bytes", "the work tree was full");
  failed.storage_full("scratch", "HOME was full");
  EXPECT_FALSE(failed.has_cause()) << "by itself it ends nothing";
  failed.exited(exit_code(1), Timestamp{5});
  failed.conclude(false, "cannot write");
  EXPECT_EQ(failed.outcome(), Outcome::limit);
  EXPECT_EQ(record_of(failed).cause.control, "work-bytes") << "the first of them";
  EXPECT_EQ(record_of(failed).cause.detail, "the work tree was full: cannot write");

  Settlement made_room;
  made_room.storage_full("work-bytes", "the work tree was full");
  made_room.exited(exit_code(0), Timestamp{5});
  made_room.conclude(true, "");
  EXPECT_EQ(made_room.outcome(), Outcome::completed);

  Settlement cancelled;
  cancelled.storage_full("work-bytes", "the work tree was full");
  cancelled.cancel("signal", "TERM", Timestamp{4});
  cancelled.exited(exit_code(1), Timestamp{5});
  cancelled.conclude(false, "cannot write");
  EXPECT_EQ(cancelled.outcome(), Outcome::cancelled);
}

// What could not be ended is never completed, and the record says what is left.
TEST(Settlement, LostTakesEveryWordBack) {
  Settlement completed;
  completed.exited(exit_code(0), Timestamp{5});
  completed.conclude(true, "");
  completed.lost("storage", "the keeper did not end", "storage keeper, pid 7", Timestamp{9});
  EXPECT_EQ(completed.outcome(), Outcome::lost);
  EXPECT_EQ(record_of(completed).cause.control, "storage");
  EXPECT_EQ(record_of(completed).settlement.left, (std::vector<std::string>{"storage keeper, pid 7"}));
  completed.conclude(true, "");
  EXPECT_EQ(completed.outcome(), Outcome::lost);
  Settlement late;
  apply(&late, Act::deadline, 3);
  late.lost("box", "still there", "box, launcher pid 5, init pid 6", Timestamp{9});
  EXPECT_EQ(late.outcome(), Outcome::lost);
  EXPECT_EQ(record_of(late).cause.control, "deadline") << "the first cause stays";
}

TEST(Settlement, WhoseEndItWas) {
  for (Act first : kActs) {
    Settlement settlement;
    apply(&settlement, first, 10);
    apply(&settlement, Act::exit, 20);
    apply(&settlement, Act::cancel, 30);
    EXPECT_EQ(settlement.ended_by_exit(), first == Act::exit || first == Act::gone) << name_of(first);
  }
}

TEST(Settlement, TheAnswerIsAFactOfItsOwn) {
  Settlement settlement;
  EXPECT_TRUE(settlement.answered(Timestamp{3}));
  EXPECT_FALSE(settlement.answered(Timestamp{4}));
  EXPECT_FALSE(settlement.has_cause());
  EXPECT_EQ(record_of(settlement).answered_at, Timestamp{3});
}

}  // namespace
}  // namespace cofferdam::settle
