#include "contract/phase.h"

#include <gtest/gtest.h>

namespace cofferdam::contract {
namespace {

TEST(Phase, NamesGoBothWays) {
  for (Phase phase : {Phase::planning, Phase::question, Phase::review, Phase::implementation}) {
    EXPECT_EQ(phase_from_name(phase_name(phase)), phase);
    EXPECT_EQ(is_read_only(phase), phase != Phase::implementation);
  }
  EXPECT_EQ(phase_from_name("Planning"), std::nullopt);
  EXPECT_EQ(phase_from_name(""), std::nullopt);
}

TEST(Outcome, NamesGoBothWaysAndExitCodesAreFixed) {
  using enum Outcome;
  const std::pair<Outcome, int> rows[] = {{completed, 0}, {failed, 1},       {refused, 3}, {limit, 4},
                                          {cancelled, 5}, {setup_failed, 6}, {lost, 6}};
  for (const auto& [outcome, code] : rows) {
    EXPECT_EQ(outcome_from_name(outcome_name(outcome)), outcome);
    EXPECT_EQ(exit_code(outcome), code);
  }
  EXPECT_STREQ(outcome_name(setup_failed), "setup-failed");
  EXPECT_EQ(outcome_from_name("setup_failed"), std::nullopt);
}

}  // namespace
}  // namespace cofferdam::contract
