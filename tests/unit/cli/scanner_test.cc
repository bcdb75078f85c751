#include "cli/scanner.h"

#include <gtest/gtest.h>

#include "base/fd.h"
#include "base/io.h"

namespace cofferdam::cli {
namespace {

struct Case {
  const char* name;
  std::string stream;
  std::size_t document;  // bytes that belong to it; 0: it never completes
};

class ScannerTest : public ::testing::TestWithParam<Case> {};

// The same end is found whether the bytes come at once or one by one.
TEST_P(ScannerTest, FindsTheEnd) {
  const Case& one = GetParam();
  DocumentScanner at_once;
  const std::size_t used = at_once.feed(one.stream);
  EXPECT_EQ(at_once.complete(), one.document != 0);
  EXPECT_EQ(used, one.document != 0 ? one.document : one.stream.size());

  DocumentScanner by_byte;
  std::size_t count = 0;
  while (count < one.stream.size() && !by_byte.complete()) {
    by_byte.feed(std::string_view(one.stream).substr(count, 1));
    ++count;
  }
  EXPECT_EQ(by_byte.complete(), one.document != 0);
  EXPECT_EQ(count, one.document != 0 ? one.document : one.stream.size());
}

INSTANTIATE_TEST_SUITE_P(Streams, ScannerTest,
                         ::testing::Values(Case{"Object", "{}", 2}, Case{"Leading", " \n\t{\"a\":1}\n", 10},
                                           Case{"Followed", R"({"a":{}}{"cancel":{}})", 8},
                                           Case{"Array", "[[],[]] x", 7},
                                           Case{"BraceInString", R"({"a":"}"} )", 9},
                                           Case{"EscapedQuote", R"({"a":"\"}"}x)", 11},
                                           Case{"EscapedBackslash", R"({"a":"\\"}x)", 10},
                                           Case{"Open", R"({"a":{})", 0}, Case{"OpenString", R"({"a":"})", 0},
                                           Case{"Bare", "hello\n{}", 6}, Case{"BareString", "\"{\"\n{}", 4},
                                           Case{"StrayEnd", "}{}", 1}, Case{"Blank", " \n ", 0}),
                         [](const auto& param_info) { return std::string(param_info.param.name); });

TEST(ReadDocument, LeavesWhatFollowsAndDoesNotWaitForTheEndOfTheStream) {
  auto pipe = make_pipe();
  ASSERT_TRUE(pipe);
  ASSERT_TRUE(write_all(pipe->write.get(), "{\"a\":1}\n{\"cancel\":"));
  auto document = read_document(pipe->read.get(), 100);  // the write end is still open
  ASSERT_TRUE(document) << document.error().line();
  EXPECT_EQ(document->text, "{\"a\":1}");
  EXPECT_EQ(document->leftover, "\n{\"cancel\":");
}

TEST(ReadDocument, EndOfStreamGivesWhatThereIs) {
  auto pipe = make_pipe();
  ASSERT_TRUE(pipe);
  ASSERT_TRUE(write_all(pipe->write.get(), "{\"a\":"));
  pipe->write.reset();
  auto document = read_document(pipe->read.get(), 100);
  ASSERT_TRUE(document);
  EXPECT_EQ(document->text, "{\"a\":");
}

TEST(ReadDocument, IsBounded) {
  auto pipe = make_pipe();
  ASSERT_TRUE(pipe);
  ASSERT_TRUE(write_all(pipe->write.get(), "{\"a\":\"" + std::string(200, 'x')));
  auto document = read_document(pipe->read.get(), 100);
  ASSERT_FALSE(document);
  EXPECT_EQ(document.error().code, Code::usage);
}

}  // namespace
}  // namespace cofferdam::cli
