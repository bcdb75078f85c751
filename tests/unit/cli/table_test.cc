#include "cli/table.h"

#include <gtest/gtest.h>

namespace cofferdam::cli {
namespace {

TEST(Table, AlignsColumnsByCharactersAndTrimsTheEnd) {
  EXPECT_EQ(table({"A", "B", "C"}, {{"xyz", "1", "end"}, {"\xC3\xA4", "22", ""}}),
            "A    B   C\n"
            "xyz  1   end\n"
            "\xC3\xA4    22\n");
}

TEST(Table, HeadMayBeAbsent) {
  EXPECT_EQ(table({}, {{"a", "b"}}), "a  b\n");
}

TEST(Table, CellsCannotBreakTheirLine) {
  EXPECT_EQ(table({"A"}, {{"x\ny\x1b[31m"}}), "A\nx y\xEF\xBF\xBD[31m\n");
}

TEST(OneLine, IsBoundedAndPrintable) {
  EXPECT_EQ(one_line("a\tb\nc\xff"), "a b c\xEF\xBF\xBD");
  EXPECT_EQ(one_line("abcdef", 3), "abc");
}

TEST(Short, AgesAndSizes) {
  EXPECT_EQ(short_age(-5), "0s");
  EXPECT_EQ(short_age(59'999), "59s");
  EXPECT_EQ(short_age(60'000), "1m");
  EXPECT_EQ(short_age(7'200'000), "2h");
  EXPECT_EQ(short_age(86'400'000LL * 3), "3d");
  EXPECT_EQ(short_bytes(12), "12 B");
  EXPECT_EQ(short_bytes(640 * 1024), "640 KiB");
  EXPECT_EQ(short_bytes(3ULL << 29U), "1.5 GiB");
}

}  // namespace
}  // namespace cofferdam::cli
