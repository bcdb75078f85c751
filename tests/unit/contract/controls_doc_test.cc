// SECURITY.md shows the control table: held to it in both directions.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <set>

#include "base/file.h"
#include "base/text.h"
#include "contract/controls.h"

namespace {

using cofferdam::contract::Control;
using cofferdam::contract::Need;

std::string row_of(const Control& control) {
  const auto cell = [&](int mode) { return control.need[mode] == Need::required ? "yes" : "no"; };
  return fmt::format("| `{}` | {} | {} | {} | {} | {} | {} |", control.name, control.what, control.why,
                     cell(0), cell(1), cell(2), control.proven_by);
}

TEST(ControlTable, SecurityMdHasItAndNoOtherRow) {
  auto text = cofferdam::read_file(std::string(COFFERDAM_SOURCE_DIR) + "/SECURITY.md", 1U << 20U);
  ASSERT_TRUE(text);
  const std::size_t begin = text->find("| control | in force | stops |");
  ASSERT_NE(begin, std::string::npos);
  std::set<std::string> shown;
  for (const std::string& line : cofferdam::split(text->substr(begin), '\n')) {
    if (!cofferdam::starts_with(line, "|")) break;
    if (cofferdam::starts_with(line, "| `")) shown.insert(line);
  }
  std::set<std::string> rows;
  for (const Control& control : cofferdam::contract::control_table()) rows.insert(row_of(control));
  for (const std::string& row : rows) EXPECT_TRUE(shown.contains(row)) << "missing: " << row;
  for (const std::string& row : shown) EXPECT_TRUE(rows.contains(row)) << "not in the table: " << row;
}

}  // namespace
