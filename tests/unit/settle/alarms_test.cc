// The clock of an attempt: which alarm comes, when, and that each comes once.
#include "settle/alarms.h"

#include <gtest/gtest.h>

namespace cofferdam::settle {
namespace {

using std::chrono::milliseconds;

constexpr SteadyTime kBegin{std::chrono::hours(1)};

SteadyTime at(int ms) {
  return kBegin + milliseconds(ms);
}

Bounds bounds() {
  Bounds out;
  out.deadline = at(10'000);
  out.first_output = milliseconds(100);
  out.idle = milliseconds(1000);
  out.after_answer = milliseconds(500);
  out.kill = milliseconds(50);
  out.lost = milliseconds(30);
  return out;
}

TEST(Alarms, BeforeTheStartThereIsOnlyTheDeadline) {
  Alarms alarms(bounds());
  EXPECT_EQ(alarms.next(), at(10'000));
  EXPECT_EQ(alarms.take(at(9'999)), Alarm::none);
  EXPECT_EQ(alarms.take(at(10'000)), Alarm::deadline);
}

TEST(Alarms, SilenceFromTheStart) {
  Alarms alarms(bounds());
  alarms.started(at(5));
  EXPECT_EQ(alarms.next(), at(105));
  EXPECT_EQ(alarms.take(at(104)), Alarm::none);
  EXPECT_EQ(alarms.take(at(105)), Alarm::first_output);
  alarms.started(at(90));
  EXPECT_EQ(alarms.next(), at(105)) << "it starts once";
  // An answer of the vendor's is a sign of life, but no output.
  alarms.active(at(100));
  EXPECT_EQ(alarms.next(), at(105));
  alarms.printed(at(101));
  EXPECT_EQ(alarms.next(), at(1101));
}

TEST(Alarms, EverySignOfLifePutsIdleOff) {
  Alarms alarms(bounds());
  alarms.started(at(0));
  alarms.printed(at(50));
  EXPECT_EQ(alarms.next(), at(1050));
  alarms.active(at(900));
  EXPECT_EQ(alarms.take(at(1899)), Alarm::none);
  alarms.active(at(700));
  EXPECT_EQ(alarms.take(at(1900)), Alarm::idle) << "an older sign does not turn it back";
}

TEST(Alarms, AfterTheAnswerThereIsLessTime) {
  Alarms alarms(bounds());
  alarms.started(at(0));
  alarms.printed(at(10));
  alarms.answered(at(100));
  EXPECT_EQ(alarms.take(at(599)), Alarm::none);
  EXPECT_EQ(alarms.take(at(600)), Alarm::unfinished);
  Bounds no_idle = bounds();
  no_idle.idle.reset();
  no_idle.first_output.reset();
  Alarms without(no_idle);
  without.started(at(0));
  EXPECT_EQ(without.next(), at(10'000)) << "the control: nothing but the deadline";
  without.answered(at(100));
  EXPECT_EQ(without.take(at(600)), Alarm::unfinished);
  Bounds short_idle = bounds();
  short_idle.idle = milliseconds(20);
  Alarms quick(short_idle);
  quick.started(at(0));
  quick.printed(at(1));
  quick.answered(at(2));
  EXPECT_EQ(quick.take(at(22)), Alarm::unfinished);
}

TEST(Alarms, OfSeveralTheEarliestComes) {
  Alarms alarms(bounds());
  alarms.started(at(9'950));
  EXPECT_EQ(alarms.take(at(20'000)), Alarm::deadline) << "10000 is before 10050";
  Alarms other(bounds());
  other.started(at(0));
  EXPECT_EQ(other.take(at(20'000)), Alarm::first_output) << "100 is before 1000 and 10000";
}

TEST(Alarms, AnEndThatDoesNotComeIsKilledThenLost) {
  Alarms alarms(bounds());
  alarms.started(at(0));
  alarms.ending(at(60));
  alarms.ending(at(90));
  alarms.printed(at(95));
  EXPECT_EQ(alarms.take(at(109)), Alarm::none) << "no deadline comes any more";
  EXPECT_EQ(alarms.take(at(115)), Alarm::kill) << "50 after the first request";
  EXPECT_EQ(alarms.take(at(115)), Alarm::none) << "once";
  EXPECT_EQ(alarms.take(at(144)), Alarm::none);
  EXPECT_EQ(alarms.take(at(145)), Alarm::lost) << "30 after the kill";
  EXPECT_EQ(alarms.take(at(99'999)), Alarm::none);
  EXPECT_EQ(alarms.next(), SteadyTime::max());
}

}  // namespace
}  // namespace cofferdam::settle
