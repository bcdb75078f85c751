// Cutting a hostile stream into lines: bounds are exact, and how the stream was cut into reads changes
// nothing.
#include "settle/line_splitter.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace cofferdam::settle {
namespace {

using Lines = std::vector<std::string>;

struct Split {
  Lines lines;
  std::uint64_t dropped = 0;
  bool operator==(const Split&) const = default;
};

// What the splitter is meant to do, said once more over the whole stream.
Split model(const std::string& stream, std::size_t max_line) {
  Split out;
  for (std::size_t at = 0; at < stream.size();) {
    const std::size_t end = stream.find('\n', at);
    const std::size_t size = (end == std::string::npos ? stream.size() : end) - at;
    if (size > max_line) ++out.dropped;
    const bool unfinished_and_empty = end == std::string::npos && size == 0;
    if (size <= max_line && !unfinished_and_empty) out.lines.push_back(stream.substr(at, size));
    if (end == std::string::npos) break;
    at = end + 1;
  }
  return out;
}

Split feed(const std::vector<std::string>& chunks, std::size_t max_line) {
  LineSplitter splitter(max_line);
  Split out;
  for (const std::string& chunk : chunks) {
    for (std::string& line : splitter.feed(chunk)) out.lines.push_back(std::move(line));
  }
  for (std::string& line : splitter.finish()) out.lines.push_back(std::move(line));
  out.dropped = splitter.dropped_lines();
  return out;
}

TEST(LineSplitter, CutsAtNewlinesOnly) {
  EXPECT_EQ(feed({"a\nb\r\n\n", "c\x1b[2J\n"}, 64).lines, (Lines{"a", "b\r", "", "c\x1b[2J"}));
  const std::string with_nul("x\0y\n", 4);
  EXPECT_EQ(feed({with_nul}, 64).lines, (Lines{with_nul.substr(0, 3)}));
}

TEST(LineSplitter, GivesTheLastLineWithoutANewline) {
  LineSplitter splitter(8);
  EXPECT_EQ(splitter.feed("one\ntwo"), (Lines{"one"}));
  EXPECT_EQ(splitter.finish(), (Lines{"two"}));
  EXPECT_EQ(splitter.finish(), Lines{}) << "only once";
  EXPECT_EQ(feed({}, 8).lines, Lines{});
  EXPECT_EQ(feed({"done\n"}, 8).lines, (Lines{"done"})) << "no empty line after the last newline";
}

struct BoundCase {
  const char* name;
  std::size_t size;
  bool kept;
};

TEST(LineSplitter, BoundIsExact) {
  constexpr std::size_t kMax = 100;
  for (const BoundCase& one :
       {BoundCase{"below", kMax - 1, true}, {"at", kMax, true}, {"above", kMax + 1, false}}) {
    SCOPED_TRACE(one.name);
    const std::string line(one.size, 'x');
    for (const std::string& end : {std::string("\n"), std::string()}) {
      Split whole = feed({line + end}, kMax);
      Split bytewise = feed({line.substr(0, 1), line.substr(1), end}, kMax);
      EXPECT_EQ(whole.lines, one.kept ? Lines{line} : Lines{});
      EXPECT_EQ(whole.dropped, one.kept ? 0U : 1U);
      EXPECT_EQ(bytewise, whole);
    }
  }
}

TEST(LineSplitter, ADroppedLineTakesNothingElseWithIt) {
  Split split = feed({"before\n" + std::string(500, 'x'), std::string(500, 'y'), "tail\nafter\n"}, 10);
  EXPECT_EQ(split.lines, (Lines{"before", "after"}));
  EXPECT_EQ(split.dropped, 1U) << "one line, however many reads it took";
}

TEST(LineSplitter, AnEndlessLineIsOneDroppedLine) {
  LineSplitter splitter(1024);
  for (int i = 0; i < 4096; ++i) EXPECT_TRUE(splitter.feed(std::string(4096, 'x')).empty());
  EXPECT_TRUE(splitter.finish().empty());
  EXPECT_EQ(splitter.dropped_lines(), 1U);
}

// The property: for any stream, any cutting of it gives what the whole stream gives, and that is the model.
TEST(LineSplitter, ChunkingChangesNothing) {
  std::mt19937 random(20261130);
  auto below = [&](std::size_t n) { return std::uniform_int_distribution<std::size_t>(0, n - 1)(random); };
  for (int round = 0; round < 2000; ++round) {
    const std::size_t max_line = below(12);
    std::string stream;
    for (std::size_t i = below(80); i > 0; --i) stream.push_back("\nab\0"[below(4)]);
    std::vector<std::string> chunks;
    for (std::size_t at = 0; at < stream.size();) {
      const std::size_t size = std::min(stream.size() - at, below(9));
      chunks.push_back(stream.substr(at, size));
      at += size;
    }
    ASSERT_EQ(feed(chunks, max_line), model(stream, max_line)) << "round " << round;
    ASSERT_EQ(feed({stream}, max_line), model(stream, max_line)) << "round " << round;
  }
}

}  // namespace
}  // namespace cofferdam::settle
