// Head and tail of a stream: exact for every size and every cutting, and what is neither is counted.
#include "settle/kept_output.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace cofferdam::settle {
namespace {

TEST(KeptOutput, SmallOutputIsAllHead) {
  KeptOutput kept(10, 5);
  EXPECT_EQ(kept.take("hello"), "hello");
  EXPECT_EQ(kept.take("world"), "world");
  EXPECT_EQ(kept.tail(), "");
  EXPECT_EQ(kept.dropped(), 0U);
}

TEST(KeptOutput, TheLastBytesAreTheTail) {
  KeptOutput kept(4, 5);
  EXPECT_EQ(kept.take("abcdefg"), "abcd");
  EXPECT_EQ(kept.tail(), "efg");
  EXPECT_EQ(kept.dropped(), 0U);
  EXPECT_EQ(kept.take("hijk"), "");
  EXPECT_EQ(kept.tail(), "ghijk");
  EXPECT_EQ(kept.dropped(), 2U);
  EXPECT_EQ(kept.taken(), 11U);
}

TEST(KeptOutput, NothingIsKeptWithoutRoom) {
  KeptOutput kept(0, 0);
  EXPECT_EQ(kept.take("abc"), "");
  EXPECT_EQ(kept.tail(), "");
  EXPECT_EQ(kept.dropped(), 3U);
}

TEST(KeptOutput, ChunkingChangesNothing) {
  constexpr unsigned kSeed = 20261130;
  SCOPED_TRACE(kSeed);
  std::mt19937 random(kSeed);
  auto below = [&](std::size_t n) { return std::uniform_int_distribution<std::size_t>(0, n - 1)(random); };
  for (int round = 0; round < 5000; ++round) {
    const std::size_t head = below(12);
    const std::size_t tail = below(12);
    std::string stream;
    for (std::size_t i = below(80); i > 0; --i) stream.push_back(static_cast<char>('a' + below(26)));
    KeptOutput kept(head, tail);
    std::string kept_head;
    for (std::size_t at = 0; at < stream.size();) {
      const std::size_t size = std::min(stream.size() - at, 1 + below(30));
      kept_head += kept.take(stream.substr(at, size));
      at += size;
    }
    const std::string rest = stream.substr(std::min(head, stream.size()));
    const std::string last = rest.substr(rest.size() - std::min(tail, rest.size()));
    ASSERT_EQ(kept_head, stream.substr(0, head)) << "round " << round;
    ASSERT_EQ(kept.tail(), last) << "round " << round;
    ASSERT_EQ(kept.dropped(), stream.size() - kept_head.size() - last.size()) << "round " << round;
  }
}

}  // namespace
}  // namespace cofferdam::settle
