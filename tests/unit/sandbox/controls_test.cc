// What probes say against what is required: only a single, positive answer to a known control counts.
#include "sandbox/controls.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace cofferdam::sandbox {
namespace {

// Those of a box with a shell.
std::vector<contract::Control> usual_controls() {
  std::vector<contract::Control> controls = contract::control_table();
  std::erase_if(controls,
                [](const contract::Control& one) { return one.shell == contract::ShellNeed::only; });
  return controls;
}

std::vector<ProbeAnswer> all_enforced() {
  std::vector<ProbeAnswer> answers;
  for (const contract::Control& control : contract::control_table())
    answers.push_back({control.name, true, "fine"});
  return answers;
}

ProbeAnswer* answer_to(std::vector<ProbeAnswer>* answers, const std::string& name) {
  auto found = std::find_if(answers->begin(), answers->end(),
                            [&](const ProbeAnswer& answer) { return answer.name == name; });
  return found == answers->end() ? nullptr : &*found;
}

contract::ControlFact fact_of(const std::vector<ProbeAnswer>& answers, const std::string& name) {
  for (contract::ControlFact& fact : judge(answers, {})) {
    if (fact.name == name) return fact;
  }
  ADD_FAILURE() << "no fact about " << name;
  return {};
}

bool required_by_default(const contract::Control& control) {
  return contract::need_of(control, Requirements{}.mode, {}) == contract::Need::required;
}

std::string first_missing_name(const std::vector<ProbeAnswer>& answers, const Requirements& held = {}) {
  std::vector<contract::ControlFact> facts = judge(answers, held);
  const contract::ControlFact* missing = first_missing(facts);
  return missing == nullptr ? "" : missing->name;
}

TEST(Controls, TableHasUniqueNamesAndReasons) {
  std::set<std::string> names;
  for (const contract::Control& control : contract::control_table()) {
    EXPECT_TRUE(names.insert(control.name).second) << control.name;
    EXPECT_STRNE(control.what, "");
    EXPECT_STRNE(control.why, "");
    const std::string side = control.proven_by;
    EXPECT_TRUE(side == "inside" || side == "outside") << side;
  }
}

TEST(Controls, OneFactPerControlInTheTablesOrder) {
  std::vector<ProbeAnswer> answers = all_enforced();
  std::reverse(answers.begin(), answers.end());
  std::vector<contract::ControlFact> facts = judge(answers, {});
  ASSERT_EQ(facts.size(), usual_controls().size());
  for (std::size_t i = 0; i < facts.size(); ++i) {
    EXPECT_EQ(facts[i].name, usual_controls()[i].name);
    EXPECT_EQ(facts[i].required, usual_controls()[i].need[2] == contract::Need::required);
    EXPECT_TRUE(facts[i].enforced);
  }
  EXPECT_EQ(first_missing(facts), nullptr);
}

TEST(Controls, AMissingAnswerIsNotEnforced) {
  EXPECT_EQ(first_missing_name({}), usual_controls()[0].name) << "no answer at all";
  for (const contract::Control& control : usual_controls()) {
    SCOPED_TRACE(control.name);
    std::vector<ProbeAnswer> answers = all_enforced();
    std::erase_if(answers, [&](const ProbeAnswer& answer) { return answer.name == control.name; });
    contract::ControlFact fact = fact_of(answers, control.name);
    EXPECT_FALSE(fact.enforced);
    EXPECT_EQ(fact.proof, "no probe has answered");
    EXPECT_EQ(first_missing_name(answers), required_by_default(control) ? control.name : "");
  }
}

TEST(Controls, ANegativeAnswerStopsOnlyWhatIsRequired) {
  for (const contract::Control& control : usual_controls()) {
    std::vector<ProbeAnswer> answers = all_enforced();
    answer_to(&answers, control.name)->enforced = false;
    EXPECT_FALSE(fact_of(answers, control.name).enforced) << "recorded either way";
    for (contract::Mode mode :
         {contract::Mode::root, contract::Mode::rootless, contract::Mode::undelegated}) {
      SCOPED_TRACE(std::string(control.name) + " as " + contract::mode_name(mode));
      const bool required = control.need[static_cast<std::size_t>(mode)] == contract::Need::required;
      EXPECT_EQ(first_missing_name(answers, {mode, {}}), required ? control.name : "");
      EXPECT_EQ(first_missing_name(answers, {mode, {{control.name, contract::Need::best_effort}}}), "");
      EXPECT_EQ(first_missing_name(answers, {mode, {{control.name, contract::Need::required}}}),
                control.name);
    }
  }
}

// Without a shell there is one control more, and another is required; the user's word counts for both.
TEST(Controls, ABoxWithoutAShell) {
  std::vector<ProbeAnswer> answers = all_enforced();
  EXPECT_EQ(judge(answers, {}, contract::Shell::none).size(), contract::control_table().size());
  for (const char* name : {"landlock", "execution"}) {
    answers = all_enforced();
    answer_to(&answers, name)->enforced = false;
    EXPECT_EQ(first_missing_name(answers), "") << "the control: with a shell";
    const auto without = judge(answers, {}, contract::Shell::none);
    ASSERT_NE(first_missing(without), nullptr) << name;
    EXPECT_EQ(first_missing(without)->name, name);
    const Requirements chosen{contract::Mode::root, {{name, contract::Need::best_effort}}};
    const auto allowed = judge(answers, chosen, contract::Shell::none);
    EXPECT_EQ(first_missing(allowed), nullptr) << name;
  }
}

TEST(Controls, ARefusalNamesTheControlAndTheLineThatChangesIt) {
  std::vector<ProbeAnswer> answers = all_enforced();
  answer_to(&answers, "seccomp")->enforced = false;
  const std::vector<contract::ControlFact> facts = judge(answers, {});
  const Error error = not_in_force(*first_missing(facts));
  EXPECT_NE(error.what.find("control seccomp is not in force"), std::string::npos) << error.what;
  EXPECT_NE(error.hint.find("CONFIG_SECCOMP_FILTER"), std::string::npos) << error.hint;
  EXPECT_NE(error.hint.find("seccomp = \"best-effort\" in [controls]"), std::string::npos) << error.hint;
}

// Two answers mean that one of them was forged; which one is not ours to guess.
TEST(Controls, TwoAnswersAreNone) {
  struct Case {
    std::vector<bool> answers;
    bool enforced;
  };
  for (const Case& one : {Case{{true}, true}, Case{{false}, false}, Case{{true, true}, false},
                          Case{{true, false}, false}, Case{{false, true}, false}, Case{{false, false}, false},
                          Case{{false, false, true}, false}, Case{{true, true, true}, false}}) {
    std::vector<ProbeAnswer> answers = all_enforced();
    std::erase_if(answers, [](const ProbeAnswer& answer) { return answer.name == "seccomp"; });
    std::string text;
    for (bool enforced : one.answers) {
      answers.push_back({"seccomp", enforced, "said"});
      text += enforced ? "1" : "0";
    }
    EXPECT_EQ(fact_of(answers, "seccomp").enforced, one.enforced) << text;
    EXPECT_EQ(first_missing_name(answers), one.enforced ? "" : "seccomp") << text;
  }
}

TEST(Controls, UnknownNamesStandForNothing) {
  std::vector<ProbeAnswer> answers = all_enforced();
  std::erase_if(answers, [](const ProbeAnswer& answer) { return answer.name == "network"; });
  for (const char* forged : {"network ", "Network", "", "network\n", "everything"}) {
    answers.push_back({forged, true, "forged"});
  }
  std::vector<contract::ControlFact> facts = judge(answers, {});
  EXPECT_EQ(facts.size(), usual_controls().size()) << "a forged name makes no fact";
  EXPECT_EQ(first_missing_name(answers), "network");
}

TEST(Controls, DetailsAreBoundedAndPrintable) {
  std::vector<ProbeAnswer> answers = all_enforced();
  answer_to(&answers, "network")->detail = "\x1b[2J\xff" + std::string(5000, 'x');
  contract::ControlFact fact = fact_of(answers, "network");
  EXPECT_EQ(fact.proof.find('\x1b'), std::string::npos);
  EXPECT_EQ(fact.proof.find('\xff'), std::string::npos);
  EXPECT_LE(fact.proof.size(), 400U);
  EXPECT_EQ(fact.proof.rfind("inside probe: ", 0), 0U);
}

}  // namespace
}  // namespace cofferdam::sandbox
