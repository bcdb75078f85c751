#include "base/text.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

#include "base/clock.h"
#include "base/sha256.h"

namespace cofferdam {
namespace {

TEST(Utf8, FollowsRfc3629) {
  for (const char* good : {"", "abc", "\u00e9", "\u20ac", "\U0001F980", "\xEF\xBF\xBF", "\xF4\x8F\xBF\xBF"}) {
    EXPECT_TRUE(is_valid_utf8(good)) << good;
  }
  for (const char* bad : {"\x80", "\xC0\xAF", "\xC1\xBF", "\xE0\x80\xAF", "\xED\xA0\x80", "\xF0\x80\x80\xAF",
                          "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xFF", "a\xE2\x82", "\xE2\x28\xA1"}) {
    EXPECT_FALSE(is_valid_utf8(bad)) << printable(bad, 64);
  }
  EXPECT_TRUE(is_valid_utf8(std::string_view("\0", 1)));
}

TEST(Printable, ReplacesWhatCouldDeceive) {
  EXPECT_EQ(printable("a\tb\n", 64), "a\tb\n");
  EXPECT_EQ(printable("\x1b[31m", 64), "\uFFFD[31m");
  EXPECT_EQ(printable("a\u202eb\u2066c\u200fd", 64), "a\uFFFDb\uFFFDc\uFFFDd");
  EXPECT_EQ(printable("\x7f\xC2\x85\r", 64), "\uFFFD\uFFFD\uFFFD");
  EXPECT_EQ(printable("\xFFok\xE2\x82", 64), "\uFFFDok\uFFFD\uFFFD");
  EXPECT_EQ(printable("Gr\u00fc\u00dfe", 64), "Gr\u00fc\u00dfe");
}

TEST(Printable, CutsAtACharacter) {
  EXPECT_EQ(printable("a\u20ac", 3), "a");
  EXPECT_EQ(printable("a\u20ac", 4), "a\u20ac");
  EXPECT_EQ(printable("abc", 0), "");
}

TEST(Printable, AnyBytesGiveValidText) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 500; ++round) {
    std::string bytes;
    for (std::size_t i = 0; i < 64; ++i) bytes.push_back(static_cast<char>(random() % 256));
    const std::string shown = printable(bytes, 100);
    EXPECT_TRUE(is_valid_utf8(shown));
    EXPECT_LE(shown.size(), 100U);
    EXPECT_EQ(printable(shown, 100), shown);
  }
}

TEST(Text, SplitsJoinsAndTrims) {
  using Parts = std::vector<std::string>;
  EXPECT_EQ(split(std::string_view("a\0b\0", 4), '\0'), (Parts{"a", "b"}));
  EXPECT_EQ(split("a,,b", ','), (Parts{"a", "", "b"}));
  EXPECT_EQ(split("", ','), Parts{});
  EXPECT_EQ(join({"a", "b", "c"}, ", "), "a, b, c");
  EXPECT_EQ(join({}, ","), "");
  EXPECT_EQ(trim(" \t a b \r\n"), "a b");
  EXPECT_EQ(trim(" \n"), "");
  EXPECT_TRUE(starts_with("abc", "ab"));
  EXPECT_FALSE(starts_with("a", "ab"));
}

TEST(ObjectId, IsFullAndLowerCase) {
  EXPECT_TRUE(is_object_id(std::string(40, 'a')));
  EXPECT_TRUE(is_object_id(std::string(64, '0')));
  for (const std::string& bad :
       {std::string(39, 'a'), std::string(41, 'a'), std::string(40, 'A'), std::string(40, 'g'),
        "-" + std::string(39, 'a'), std::string(40, 'a') + "\n", std::string("HEAD")}) {
    EXPECT_FALSE(is_object_id(bad)) << bad;
  }
}

TEST(RandomHex, IsHexAndDistinct) {
  std::set<std::string> seen;
  for (int i = 0; i < 100; ++i) {
    const std::string text = random_hex(16);
    EXPECT_EQ(text.size(), 32U);
    EXPECT_EQ(text.find_first_not_of("0123456789abcdef"), std::string::npos);
    EXPECT_TRUE(seen.insert(text).second);
  }
}

TEST(Sha256, AgreesWithTheStandard) {  // FIPS 180-4 examples
  EXPECT_EQ(sha256_hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256_hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

TEST(Clock, FormatsAndParses) {
  EXPECT_EQ(to_rfc3339({0}), "1970-01-01T00:00:00.000Z");
  EXPECT_EQ(to_rfc3339({-1}), "1969-12-31T23:59:59.999Z");
  EXPECT_EQ(to_rfc3339({951'782'400'007}), "2000-02-29T00:00:00.007Z");
  Timestamp parsed;
  ASSERT_TRUE(from_rfc3339("2026-11-30T08:15:00.123Z", &parsed));
  EXPECT_EQ(to_rfc3339(parsed), "2026-11-30T08:15:00.123Z");
  const Timestamp before = now();
  ASSERT_TRUE(from_rfc3339(to_rfc3339(before), &parsed));
  EXPECT_EQ(parsed, before);
  EXPECT_GT(before.ms, 1'600'000'000'000);
}

TEST(Clock, ParsesNothingElse) {
  Timestamp parsed;
  for (const char* bad : {"", "2026-11-30T08:15:00Z", "2026-11-30 08:15:00.123Z", "2026-02-30T08:15:00.123Z",
                          "2026-13-01T08:15:00.123Z", "2026-11-30T24:00:00.000Z", "2026-11-30T08:15:60.000Z",
                          "2026-11-30T08:15:00.123z", "2026-11-30T 8:15:00.123Z", "2026-11-30T08:15:00.+12Z",
                          "2026-11-30T08:15:00.123Zx", "-026-11-30T08:15:00.123Z"}) {
    EXPECT_FALSE(from_rfc3339(bad, &parsed)) << bad;
  }
}

}  // namespace
}  // namespace cofferdam
