// That the table of attacks is whole: every control, every layer, every rule of the filter, every row of the
// lists of how boxes have failed.
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <set>

#include "base/text.h"
#include "contract/controls.h"
#include "gate/gate.h"
#include "init/plan.h"
#include "sandbox/native/seccomp_filter.h"

namespace cofferdam::test {
namespace {

using gate::Attack;
using gate::NotApplicable;
using Names = std::set<std::string>;

// D: escape classes of a box and of what comes back from it. C: how boxes for agents have failed. G: holes
// that were found while this one was designed. Gaps in the numbers are rows that are about something else.
Names rows_of_the_lists() {
  Names rows = {"G7", "G16", "G17"};
  for (int i = 1; i <= 43; ++i) rows.insert("D" + std::to_string(i));
  for (const int i :
       {1, 3, 4, 5, 7, 8, 9, 10, 11, 12, 13, 14, 15, 17, 18, 19, 20, 21, 22, 23, 24, 26, 28, 29}) {
    rows.insert("C" + std::to_string(i));
  }
  return rows;
}

Names classes_with_an_attack() {
  Names found;
  for (const Attack& attack : gate::attacks()) {
    for (const std::string& one : split(attack.classes, ' ')) {
      if (!one.empty()) found.insert(one);
    }
  }
  return found;
}

Names minus(const Names& from, const Names& what) {
  Names left;
  std::set_difference(from.begin(), from.end(), what.begin(), what.end(), std::inserter(left, left.end()));
  return left;
}

TEST(AttackTable, HasEveryRowOfTheLists) {
  Names there = classes_with_an_attack();
  const Names attacked = there;
  for (const NotApplicable& entry : gate::not_applicable()) {
    EXPECT_FALSE(entry.reason.empty()) << entry.id;
    EXPECT_EQ(attacked.count(entry.id), 0U) << entry.id << " is attacked, so it applies";
    if (contract::find_control(entry.id) != nullptr) continue;  // HasEveryControl
    EXPECT_TRUE(there.insert(entry.id).second) << entry.id << " twice";
  }
  EXPECT_EQ(minus(rows_of_the_lists(), there), Names{}) << "rows without an entry";
  EXPECT_EQ(minus(there, rows_of_the_lists()), Names{}) << "entries for rows that no list has";
  // The control: a row that is missing is seen.
  there.erase("D20");
  EXPECT_EQ(minus(rows_of_the_lists(), there), Names{"D20"});
}

TEST(AttackTable, HasEveryControl) {
  Names controls;
  for (const contract::Control& control : contract::control_table()) controls.insert(control.name);
  Names there;
  for (const Attack& attack : gate::attacks()) {
    if (!attack.control.empty() && !attack.layers.empty()) there.insert(attack.control);
  }
  for (const NotApplicable& entry : gate::not_applicable()) {
    if (contract::find_control(entry.id) == nullptr) continue;
    EXPECT_TRUE(there.insert(entry.id).second) << entry.id << " is attacked, so it applies";
  }
  EXPECT_EQ(minus(controls, there), Names{}) << "controls that nothing attacks";
  EXPECT_EQ(minus(there, controls), Names{}) << "attacks on controls that are none";
}

TEST(AttackTable, HasEveryLayerAndNoOther) {
  Names layers(std::begin(plan::kLayerNames), std::end(plan::kLayerNames));
  layers.insert({gate::kStorageBound, gate::kHostRootUnmapped});
  Names named;
  for (const Attack& attack : gate::attacks()) named.insert(attack.layers.begin(), attack.layers.end());
  EXPECT_EQ(named, layers);
}

TEST(AttackTable, HasEveryRuleOfTheFilter) {
  Names ids;
  for (const Attack& attack : gate::attacks()) ids.insert(attack.id);
  for (const sandbox::SyscallRule& rule : sandbox::syscall_rules()) {
    if (!rule.when.empty() || rule.error == 0) continue;  // rows of their own; nothing to attack
    EXPECT_EQ(ids.count(std::string("call-") + rule.name), 1U) << rule.name;
  }
}

TEST(AttackTable, IdsAndRowsAreUniqueAndMany) {
  Names ids;
  for (const Attack& attack : gate::attacks()) {
    EXPECT_TRUE(ids.insert(attack.id).second) << attack.id;
    EXPECT_FALSE(attack.what.empty()) << attack.id;
    EXPECT_FALSE(attack.act.empty()) << attack.id;
  }
  EXPECT_GT(ids.size(), 150U);
  Names rows;
  for (const gate::Row& row : gate::plan_rows(gate::attacks()))
    EXPECT_TRUE(rows.insert(row.id).second) << row.id;
}

TEST(AttackTable, ADescriptionOfRowsThatDoNotExistIsRefused) {
  auto none = gate::choose_rows("no-such-attack");
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, Code::usage);
  auto all_of_one = gate::choose_rows("umount-metadata");
  ASSERT_TRUE(all_of_one);
  EXPECT_EQ(all_of_one->size(), 5U);
  auto one = gate::choose_rows("umount-metadata/seccomp");
  ASSERT_TRUE(one);
  EXPECT_EQ(one->size(), 1U);
}

}  // namespace
}  // namespace cofferdam::test
