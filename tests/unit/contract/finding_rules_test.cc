// docs/handoff.md shows the table of rules: held to it in both directions.
#include "contract/finding_rules.h"

#include <gtest/gtest.h>

#include "base/file.h"
#include "base/text.h"

namespace {

using cofferdam::contract::FindingAction;
using cofferdam::contract::FindingRule;

std::string row_of(const FindingRule& rule) {
  return std::string("| `") + rule.name + "`" + (rule.free ? " * | " : " | ") +
         finding_action_name(rule.action) + " | ";
}

TEST(FindingRules, TheDocumentHasThemAllAndNoOther) {
  auto text = cofferdam::read_file(std::string(COFFERDAM_SOURCE_DIR) + "/docs/handoff.md", 1U << 20U);
  ASSERT_TRUE(text);
  const std::size_t begin = text->find("| rule | by default | what |");
  ASSERT_NE(begin, std::string::npos);
  std::size_t rows = 0;
  for (const std::string& line : cofferdam::split(text->substr(begin), '\n')) {
    if (!cofferdam::starts_with(line, "| `")) {
      if (rows > 0) break;
      continue;
    }
    ++rows;
    bool known = false;
    for (const FindingRule& rule : cofferdam::contract::finding_rules()) {
      known = known || cofferdam::starts_with(line, row_of(rule));
    }
    EXPECT_TRUE(known) << line;
  }
  EXPECT_EQ(rows, cofferdam::contract::finding_rules().size());
}

TEST(FindingRules, OnlyFreeOnesAreTurned) {
  for (const FindingRule& rule : cofferdam::contract::finding_rules()) {
    const FindingAction other =
        rule.action == FindingAction::refused ? FindingAction::reported : FindingAction::refused;
    EXPECT_EQ(action_of(rule, {{rule.name, other}}), rule.free ? other : rule.action) << rule.name;
  }
}

}  // namespace
