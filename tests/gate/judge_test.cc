// Rows, answers and verdicts, without a box.
#include <gtest/gtest.h>

#include "gate/gate.h"

namespace cofferdam::test {
namespace {

using gate::Answer;
using gate::Attack;
using gate::BoxKind;
using gate::HostFacts;
using gate::Outcome;
using gate::Outcomes;
using gate::Row;
using gate::RowResult;
using gate::Setting;
using gate::Verdict;

Attack attack(std::vector<std::string> layers) {
  return {"a", "seccomp", "D20", std::move(layers), "an attack", "nothing"};
}

TEST(GateRows, EachLayerIsShownAloneInABoxWithoutTheOthers) {
  const std::vector<Row> rows = gate::plan_rows({attack({"x", "y", "z"})});
  ASSERT_EQ(rows.size(), 4U);
  const BoxKind full{Setting::agent, {}, ""};
  const BoxKind control{Setting::agent, {"x", "y", "z"}, ""};
  EXPECT_EQ(rows[0].id, "a");
  EXPECT_EQ(rows[0].layer, "x + y + z");
  EXPECT_EQ(rows[0].denied_in, full);
  EXPECT_EQ(rows[2].id, "a/y");
  EXPECT_EQ(rows[2].layer, "y");
  EXPECT_EQ(rows[2].denied_in, (BoxKind{Setting::agent, {"x", "z"}, ""}));
  for (const Row& row : rows) EXPECT_EQ(row.control, control);
  EXPECT_EQ(gate::plan_rows({attack({"x"})}).size(), 1U);
  EXPECT_FALSE(gate::plan_rows({attack({})}).at(0).control.has_value());
}

TEST(GateRows, AnAttackByItselfHasItsBoxForItself) {
  Attack alone = attack({"x"});
  alone.by_itself = true;
  EXPECT_EQ(gate::plan_rows({alone}).at(0).denied_in.only, "a");
}

TEST(GateAnswers, AreReadStrictly) {
  const auto good = gate::parse_answers("1 allowed it worked\n0 denied EPERM\n", 2);
  EXPECT_EQ(good[0].answer, Answer::denied);
  EXPECT_EQ(good[0].detail, "EPERM");
  EXPECT_EQ(good[1].answer, Answer::allowed);
  EXPECT_EQ(good[1].detail, "it worked");
  for (const char* text :
       {"2 denied EPERM\n", "0 held EPERM\n", "-1 denied EPERM\n", "x denied EPERM\n", "0\n",
        " denied EPERM\n", "99999999999999999999 denied EPERM\n", "0 denied EPERM\nrubbish\n"}) {
    for (const Outcome& outcome : gate::parse_answers(text, 2)) {
      EXPECT_EQ(outcome.answer, Answer::error) << text;
    }
  }
  EXPECT_EQ(gate::parse_answers("", 1)[0].answer, Answer::error) << "no answer";
  EXPECT_EQ(gate::parse_answers("0 denied EPERM\n0 denied EPERM\n", 1)[0].answer, Answer::error)
      << "two answers";
  EXPECT_EQ(gate::parse_answers("0 denied \x1b[31m\n", 1)[0].detail.find('\x1b'), std::string::npos);
}

RowResult judged(Answer in_box, Answer in_control, gate::Need need = gate::Need::nothing) {
  Attack one = attack({"x"});
  one.need = need;
  const Row row = gate::plan_rows({one}).at(0);
  const Outcomes outcomes = {{row.denied_in, {{"a", {in_box, "here"}}}},
                             {*row.control, {{"a", {in_control, "there"}}}}};
  return gate::judge(row, outcomes, HostFacts{});
}

TEST(GateVerdicts, OnlyADenialWithAControlHolds) {
  EXPECT_EQ(judged(Answer::denied, Answer::allowed).verdict, Verdict::held);
  EXPECT_EQ(judged(Answer::unavailable, Answer::allowed).verdict, Verdict::held);
  for (const Answer control : {Answer::allowed, Answer::denied, Answer::unavailable, Answer::error}) {
    EXPECT_EQ(judged(Answer::allowed, control).verdict, Verdict::broken);
  }
  EXPECT_EQ(judged(Answer::denied, Answer::denied).verdict, Verdict::unproven);
  EXPECT_EQ(judged(Answer::denied, Answer::error).verdict, Verdict::unproven);
  EXPECT_EQ(judged(Answer::error, Answer::allowed).verdict, Verdict::unproven);
  EXPECT_EQ(judged(Answer::denied, Answer::unavailable).verdict, Verdict::not_applicable);
  EXPECT_EQ(judged(Answer::denied, Answer::allowed, gate::Need::root).verdict, Verdict::not_applicable);
  EXPECT_EQ(judged(Answer::denied, Answer::denied).control_verdict, "not shown: denied: there");
}

TEST(GateVerdicts, ABoxThatWasNotMadeProvesNothing) {
  const Row row = gate::plan_rows({attack({"x"})}).at(0);
  EXPECT_EQ(gate::judge(row, {}, HostFacts{}).verdict, Verdict::unproven);
}

TEST(GateVerdicts, WhatABuildNeedsHasToWork) {
  const Row row = gate::plan_rows({attack({})}).at(0);
  const auto verdict = [&row](Answer answer) {
    return gate::judge(row, {{row.denied_in, {{"a", {answer, "here"}}}}}, HostFacts{}).verdict;
  };
  EXPECT_EQ(verdict(Answer::allowed), Verdict::held);
  EXPECT_EQ(verdict(Answer::denied), Verdict::broken);
  EXPECT_EQ(verdict(Answer::error), Verdict::broken);
}

TEST(GateReport, PassesOnlyWhenSomethingHeldAndNothingElseHappened) {
  gate::Report report;
  EXPECT_FALSE(report.passed()) << "nothing was shown";
  report.rows.push_back(judged(Answer::denied, Answer::allowed));
  EXPECT_TRUE(report.passed());
  report.rows.push_back(judged(Answer::denied, Answer::error));
  EXPECT_FALSE(report.passed());
  EXPECT_NE(report.conclusion().find("unproven: a"), std::string::npos);
  report.rows.back() = judged(Answer::allowed, Answer::allowed);
  EXPECT_FALSE(report.passed());
  EXPECT_NE(report.conclusion().find("BROKEN: x does not hold: a"), std::string::npos);
}

}  // namespace
}  // namespace cofferdam::test
