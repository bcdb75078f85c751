#include "contract/json.h"

#include <gtest/gtest.h>

#include <functional>

#include "base/text.h"

namespace cofferdam::contract {
namespace {

std::string problem(std::string_view text, std::size_t max_bytes = 4096, std::size_t depth = kMaxJsonDepth) {
  auto parsed = parse_json(text, max_bytes, depth);
  return parsed ? "accepted" : parsed.error().what;
}

TEST(ParseJson, SaysWhere) {
  EXPECT_EQ(problem(R"({"a":{"b":[1,{"c":1,"c":2}]}})"), "$.a.b[1].c: duplicate key");
  EXPECT_EQ(problem(R"({"a":[0,"x\u0000"]})"), "$.a[1]: a string that contains NUL");
  EXPECT_EQ(problem(R"({"a":[0,18446744073709551616]})"), "$.a[1]: an integer that does not fit 64 bits");
  EXPECT_EQ(problem(R"({"a b":-9223372036854775809})"), "$[\"a b\"]: an integer that does not fit 64 bits");
  EXPECT_EQ(problem(R"({"a":1e400})"), "$.a: a number that does not fit a double, at byte 10");
  EXPECT_EQ(problem(R"({"a":"\ud800"})"), "$.a: not JSON in UTF-8, at byte 13");
  EXPECT_EQ(problem("[[[]]]", 4096, 2), "$[0][0]: nested deeper than 2");
  EXPECT_EQ(problem("[1]", 2), "$: larger than 2 bytes");
}

TEST(ParseJson, RefusesWhatTheLibraryLetsThrough) {
  EXPECT_NE(problem(std::string_view("{}\0x", 4)), "accepted");
  EXPECT_NE(problem("\xEF\xBB\xBF{}"), "accepted");
  EXPECT_NE(problem("{} "
                    "{}"),
            "accepted");
  EXPECT_NE(problem(""), "accepted");
  EXPECT_NE(problem("\"\xC0\xAF\""), "accepted");
  EXPECT_NE(problem("NaN"), "accepted");
}

TEST(ParseJson, AcceptsTheLimits) {
  EXPECT_EQ(problem("18446744073709551615"), "accepted");
  EXPECT_EQ(problem("-9223372036854775808"), "accepted");
  EXPECT_EQ(problem("1.7976931348623157e308"), "accepted");
  EXPECT_EQ(problem("[[]]", 4, 2), "accepted");
  EXPECT_EQ(problem(" \t\r\n{} "), "accepted");
}

TEST(ParseJson, DeepInputDoesNotUseUpTheStack) {
  const std::string deep(200'000, '[');
  EXPECT_EQ(problem(deep, 200'000, 200'000).substr(0, 1), "$");
  EXPECT_TRUE(starts_with(problem(deep, 200'000), "$[0]"));
}

TEST(ParseJsonLenient, KeepsTheLastOfDuplicateKeysWithinTheBounds) {
  auto parsed = parse_json_lenient(R"({"a":1,"a":"x\u0000","b":18446744073709551616})", 4096);
  ASSERT_TRUE(parsed);
  EXPECT_EQ((*parsed)["a"], std::string("x\0", 2));
  EXPECT_TRUE((*parsed)["b"].is_number_float());
  EXPECT_FALSE(parse_json_lenient("[[[]]]", 4096, 2));
  EXPECT_FALSE(parse_json_lenient("\"\xFF\"", 4096));
  EXPECT_FALSE(parse_json_lenient("[1e999]", 4096));
  EXPECT_FALSE(parse_json_lenient("[] []", 4096));
}

TEST(Canonical, SortsAndKeepsUtf8) {
  auto parsed = parse_json(R"( {"b" : [ 1.0, "\u00e9\/\n" ], "a" : {}} )", 4096);
  ASSERT_TRUE(parsed);
  EXPECT_EQ(canonical(*parsed), "{\"a\":{},\"b\":[1.0,\"\u00e9/\\n\"]}");
  EXPECT_EQ(canonical(Json("\xFF")), "\"\uFFFD\"");
}

TEST(JsonText, TakesAnyBytes) {
  EXPECT_EQ(json_text("a\x01\u202e", 64), "a\x01\u202e");
  EXPECT_EQ(json_text("a\xFF", 64), "a\uFFFD");
  EXPECT_EQ(json_text(std::string_view("a\0b", 3), 64), "a\uFFFDb");
  EXPECT_EQ(json_text("abcdef", 3), "abc");
  EXPECT_EQ(json_count(~0ULL), kMaxJsonInteger);
}

class Reader : public ::testing::Test {
 protected:
  ObjectReader read(const char* text) {
    auto parsed = parse_json(text, 4096);
    EXPECT_TRUE(parsed);
    document_ = *std::move(parsed);
    return {document_, "$", &fault_};
  }
  std::string error() const { return fault_.failed() ? fault_.error().what : "none"; }

  Json document_;
  JsonFault fault_;
};

TEST_F(Reader, ReadsEveryKind) {
  ObjectReader in = read(R"({"t":"x","i":7,"b":true,"at":"2026-11-30T08:15:00.123Z","e":"two","o":{"k":null},
                             "l":["a","b"],"os":[{"n":1},{"n":2}],"f":0.5,"z":null,"r":[1],"v":"1"})");
  EXPECT_EQ(in.text("t", {1, 1}), "x");
  EXPECT_EQ(in.integer("i", 7, 7), 7U);
  EXPECT_TRUE(in.boolean("b"));
  EXPECT_EQ(to_rfc3339(in.timestamp("at")), "2026-11-30T08:15:00.123Z");
  EXPECT_EQ(in.choice("e", {"one", "two"}), 1U);
  ObjectReader inner = in.object("o");
  EXPECT_EQ(inner.maybe_text("k", {}, Absent::only_null), std::nullopt);
  EXPECT_EQ(inner.maybe_integer("missing", 0, 1, Absent::allowed), std::nullopt);
  inner.finish();
  EXPECT_EQ(in.texts("l", 2, 2, {1, 1}), (std::vector<std::string>{"a", "b"}));
  std::uint64_t sum = 0;
  for (ObjectReader& one : in.objects("os", 0, 2)) sum += one.integer("n", 0, 9);
  EXPECT_EQ(sum, 3U);
  EXPECT_EQ(in.maybe_number("f", 0, 1, Absent::only_null), 0.5);
  in.null("z");
  EXPECT_EQ(in.raw("r"), Json::array({1}));
  in.constant("v", "1");
  in.finish();
  EXPECT_EQ(error(), "none");
}

TEST_F(Reader, FirstErrorWinsAndReadingGoesOn) {
  ObjectReader in = read(R"({"o":{"n":-1},"l":["a",2],"extra":0})");
  ObjectReader inner = in.object("o");
  EXPECT_EQ(inner.integer("n", 3, 9), 3U);
  in.texts("l", 0, 9, {});
  in.text("missing", {});
  in.finish();
  EXPECT_EQ(error(), "$.o.n: must be an integer from 3 to 9");
}

TEST_F(Reader, NamesThePlace) {
  const std::pair<const char*, std::function<void(ObjectReader*)>> cases[] = {
      {"$.l[1]: must be a string", [](ObjectReader* in) { in->texts("l", 0, 9, {}); }},
      {"$.l: must have 3 to 9 entries", [](ObjectReader* in) { in->texts("l", 3, 9, {}); }},
      {"$.l[0]: must be an object", [](ObjectReader* in) { in->objects("l", 0, 9); }},
      {"$.gone: is missing", [](ObjectReader* in) { in->object("gone").text("x", {}); }},
      {"$.gone: is missing", [](ObjectReader* in) { in->maybe_text("gone", {}, Absent::only_null); }},
      {"$.n: must be an integer", [](ObjectReader* in) { in->integer("n", 0, 9); }},
      {"$.n: must be true or false", [](ObjectReader* in) { in->boolean("n"); }},
      {"$.t: must have 0 to 1 bytes",
       [](ObjectReader* in) {
         in->text("t", {0, 1});
       }},
      {"$.t: must be one of \"a\", \"b\"",
       [](ObjectReader* in) {
         in->choice("t", {"a", "b"});
       }},
      {"$.t: must be \"a\"", [](ObjectReader* in) { in->constant("t", "a"); }},
      {"$.t: must be a time such as 2026-11-30T08:15:00.123Z", [](ObjectReader* in) { in->timestamp("t"); }},
      {"$.t: must be null", [](ObjectReader* in) { in->null("t"); }},
      {"$.l: unknown key", [](ObjectReader* in) { in->finish(); }},
  };
  for (const auto& [expected, act] : cases) {
    fault_ = {};
    ObjectReader in = read(R"({"l":["a",2],"n":1.0,"t":"time"})");
    act(&in);
    EXPECT_EQ(error(), expected);
  }
}

// What is passed on stays what it was: order of members and NUL in strings; everything else is as strict.
TEST(OrderedJson, KeepsOrderAndNulAndRefusesTheRest) {
  auto kept = parse_json_ordered(R"({"z":1,"a":{"y":"p\u0000q","b":[{"k":1,"c":2}]},"m":1.5})", 4096);
  ASSERT_TRUE(kept.has_value());
  EXPECT_EQ(in_order(*kept), R"({"z":1,"a":{"y":"p\u0000q","b":[{"k":1,"c":2}]},"m":1.5})");
  const char* refused[] = {R"({"a":1,"a":2})",
                           R"({"a":1,"b":2,"\u0061":3})",
                           R"({"a":{"x":[{"k":1,"k":1}]}})",
                           R"({"a\u0000":1})",
                           R"([18446744073709551616])",
                           "{\"a\":\"\xff\"}",
                           R"({"a":"\ud800"})",
                           "\xef\xbb\xbf{}",
                           "{}x"};
  for (const char* text : refused) EXPECT_FALSE(parse_json_ordered(text, 4096).has_value()) << text;
  EXPECT_EQ(parse_json_ordered(R"({"b":{"x":1,"x":2}})", 4096).error().what, "$.b.x: duplicate key");
  EXPECT_FALSE(parse_json_ordered("[[[]]]", 4096, 2).has_value());
  EXPECT_FALSE(parse_json_ordered("[1,2]", 4).has_value());
}

// A search per key would take minutes here.
TEST(OrderedJson, ManyKeysAreReadInTime) {
  std::string text = "{\"k\":0";
  for (int i = 0; i < 200'000; ++i) text += ",\"k" + std::to_string(i) + "\":0";
  text += "}";
  auto parsed = parse_json_ordered(text, text.size());
  ASSERT_TRUE(parsed.has_value());
  EXPECT_EQ(parsed->size(), 200'001U);
}

}  // namespace
}  // namespace cofferdam::contract
