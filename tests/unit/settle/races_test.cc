// Races, with a clock of the test's own: deadlines, cancel, the program's end, limits, the answer and the end
// of the box in random order. Exactly one cause, and it is the first; every other fact stands beside it.
#include <gtest/gtest.h>

#include <iostream>
#include <map>
#include <random>

#include "settle/alarms.h"
#include "settle/settlement.h"

namespace cofferdam::settle {
namespace {

using contract::Outcome;
using contract::ResultRecord;
using std::chrono::milliseconds;

constexpr int kRounds = 5000;
constexpr SteadyTime kBegin{std::chrono::hours(1)};

// The last three have no part in what the cause is.
enum class Act { cancel, exit, limit, output, answer, vendor, gone };

// What a supervisor does with the two classes, and nothing else.
struct Supervised {
  explicit Supervised(const Bounds& bounds) : alarms(bounds) {}
  Alarms alarms;
  Settlement settlement;
  int asked_for_the_end = 0;  // how often a cause was the first

  void cause(bool first, SteadyTime at) {
    if (first) ++asked_for_the_end;
    alarms.ending(at);
  }
  void clock(int ms) {
    const SteadyTime at = kBegin + milliseconds(ms);
    const char* control = nullptr;
    switch (alarms.take(at)) {
      case Alarm::deadline:
        control = "deadline";
        break;
      case Alarm::first_output:
        control = "first-output";
        break;
      case Alarm::idle:
      case Alarm::unfinished:
        control = "idle";
        break;
      case Alarm::none:
      case Alarm::kill:
      case Alarm::lost:
        break;
    }
    if (control != nullptr) cause(settlement.end(Outcome::limit, control, "", Timestamp{ms}), at);
  }
  void act(Act what, int ms) {
    const SteadyTime at = kBegin + milliseconds(ms);
    const Timestamp stamp{ms};
    if (what == Act::cancel) cause(settlement.cancel("signal", "TERM", stamp), at);
    if (what == Act::limit) cause(settlement.end(Outcome::limit, "stdout", "", stamp), at);
    if (what == Act::exit) {
      const bool first = !settlement.has_cause();
      settlement.exited({ms % 256, std::nullopt}, stamp);
      cause(first, at);
    }
    if (what == Act::output) alarms.printed(at);
    if (what == Act::vendor) alarms.active(at);
    if (what == Act::answer) {
      settlement.answered(stamp);
      alarms.answered(at);
    }
    if (what == Act::gone) settlement.box_gone(ms % 2 == 0, stamp);
  }
};

// The rules, as simply as they can be said: the earliest moment wins, whatever it is.
struct Model {
  int deadline = 0;
  int first_output = 0;
  int idle = 0;
  int after_answer = 0;
  bool printed = false;
  int sign = 0;
  std::optional<int> answer, exit, cancel, gone, cause_ms;
  std::string control;

  void set(const char* what, int ms) {
    if (cause_ms.has_value()) return;
    cause_ms = ms;
    control = what;
  }
  // Every millisecond, after what happened in it.
  void clock(int ms) {
    // Of several that are due in the same millisecond the order is that of the table in docs/attempt.md.
    if (ms >= deadline) set("deadline", ms);
    if (!printed && ms >= first_output) set("first-output", ms);
    if (ms >= sign + (answer.has_value() ? std::min(idle, after_answer) : idle)) set("idle", ms);
  }
  void act(Act what, int ms) {
    auto once = [ms](std::optional<int>* fact) {
      if (!fact->has_value()) *fact = ms;
    };
    if (what == Act::cancel) set("cancel", ms), once(&cancel);
    if (what == Act::limit) set("stdout", ms);
    if (what == Act::exit) set("exit", ms), once(&exit);
    if (what == Act::gone) once(&gone);
    if (what == Act::output) printed = true;
    if (what == Act::answer) once(&answer);
    if (what == Act::output || what == Act::vendor || what == Act::answer) sign = ms;
  }
};

void expect_equal(const Supervised& run, const Model& model) {
  ResultRecord result;
  run.settlement.record(&result);
  EXPECT_EQ(run.asked_for_the_end, model.cause_ms.has_value() ? 1 : 0) << "exactly one cause";
  EXPECT_EQ(result.cause.control, model.control);
  if (model.cause_ms.has_value()) {
    EXPECT_EQ(result.cause.at.ms, *model.cause_ms);
  }
  auto same = [](const std::optional<Timestamp>& at, const std::optional<int>& ms) {
    return at.has_value() == ms.has_value() && (!at.has_value() || at->ms == *ms);
  };
  EXPECT_TRUE(same(result.process.ended_at, model.exit));
  EXPECT_TRUE(same(result.settlement.box_gone_at, model.gone));
  EXPECT_TRUE(same(result.answered_at, model.answer));
  EXPECT_EQ(result.cancel.has_value(), model.cancel.has_value());
  if (model.exit.has_value()) {
    EXPECT_EQ(result.process.exit_code, *model.exit % 256);
  }
  const Outcome expected = !model.cause_ms.has_value() ? Outcome::setup_failed
                           : model.control == "cancel" ? Outcome::cancelled
                           : model.control == "exit"   ? Outcome::failed
                                                       : Outcome::limit;
  EXPECT_EQ(result.outcome, expected);
}

TEST(Races, TheFirstCauseWinsExactlyOnce) {
  const unsigned seed = std::random_device{}();
  std::cout << "seed " << seed << "\n";
  std::mt19937 random(seed);
  auto below = [&](int n) { return std::uniform_int_distribution<int>(0, n - 1)(random); };
  std::map<std::string, int> seen;
  for (int round = 0; round < kRounds; ++round) {
    Model model;
    model.deadline = 20 + below(60);
    model.first_output = 1 + below(60);
    model.idle = 1 + below(60);
    model.after_answer = 1 + below(60);
    Bounds bounds;
    bounds.deadline = kBegin + milliseconds(model.deadline);
    bounds.first_output = milliseconds(model.first_output);
    bounds.idle = milliseconds(model.idle);
    bounds.after_answer = milliseconds(model.after_answer);
    bounds.kill = milliseconds(1 + below(20));
    bounds.lost = milliseconds(1 + below(20));
    Supervised run(bounds);
    run.alarms.started(kBegin);
    for (int ms = 1; ms < 100; ++ms) {
      for (int acts = below(30) == 0 ? 1 + below(3) : 0; acts > 0; --acts) {
        const Act what = static_cast<Act>(below(7));
        run.act(what, ms);
        model.act(what, ms);
      }
      run.clock(ms);
      model.clock(ms);
    }
    ++seen[model.control];
    expect_equal(run, model);
    if (::testing::Test::HasFailure()) FAIL() << "seed " << seed << ", round " << round;
  }
  // The control: the rounds reach every kind of cause.
  for (const char* control : {"deadline", "first-output", "idle", "cancel", "exit", "stdout"}) {
    EXPECT_GT(seen[control], 0) << control;
  }
}

}  // namespace
}  // namespace cofferdam::settle
