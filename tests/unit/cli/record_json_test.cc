#include "cli/record_json.h"

#include <gtest/gtest.h>

#include "contract/json.h"

namespace cofferdam::cli {
namespace {

constexpr std::size_t kMaxTestJson = 1U << 20U;

contract::ResultRecord changed() {
  contract::ResultRecord result;
  result.attempt_id = "a-1";
  result.change.base = std::string(40, 'a');
  result.change.commit = std::string(40, 'b');
  result.change.files = {{"src/add.c", "modified"}};
  result.change.file_count = 1;
  return result;
}

contract::Json read_line(const std::string& line) {
  EXPECT_EQ(line.find('\n'), line.size() - 1) << "one line: " << line;
  auto json = contract::parse_json(line, kMaxTestJson);
  EXPECT_TRUE(json) << json.error().line();
  return json ? *json : contract::Json();
}

TEST(DiffJson, HasEveryKey) {
  EXPECT_EQ(diff_json(changed(), "diff --git a/src/add.c b/src/add.c\n"),
            "{\"attempt_id\":\"a-1\",\"base\":\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\","
            "\"commit\":\"bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb\",\"file_count\":1,"
            "\"files\":[{\"path\":\"src/add.c\",\"status\":\"modified\"}],"
            "\"patch\":\"diff --git a/src/add.c b/src/add.c\\n\"}\n");
}

TEST(DiffJson, NothingChanged) {
  contract::ResultRecord result = changed();
  result.change.commit.reset();
  result.change.files.clear();
  result.change.file_count = 0;
  const contract::Json json = read_line(diff_json(result, ""));
  EXPECT_EQ(json["base"], std::string(40, 'a'));
  EXPECT_TRUE(json["commit"].is_null());
  EXPECT_EQ(json["patch"], "");
  EXPECT_EQ(json["files"], contract::Json::array());
  result.change.base.clear();  // the clone was never made
  EXPECT_TRUE(read_line(diff_json(result, ""))["base"].is_null());
}

TEST(DiffJson, PatchKeepsWhatJsonCanHold) {
  const std::string text = "+caf\xC3\xA9\t\r\n+\033[31m\n";
  EXPECT_EQ(read_line(diff_json(changed(), text))["patch"], text);
}

TEST(DiffJson, PatchOfOtherBytesIsReplacedAndNotCut) {
  const std::string bytes = "+" + std::string(1000, '\xFF') + "end\n";
  std::string expected = "+";
  for (int count = 0; count < 1000; ++count) expected += "\xEF\xBF\xBD";
  EXPECT_EQ(read_line(diff_json(changed(), bytes))["patch"], expected + "end\n");
  EXPECT_EQ(read_line(diff_json(changed(), std::string("a\0b", 3)))["patch"],
            "a\xEF\xBF\xBD"
            "b");
}

TEST(CancelJson, SaysThatItWasAccepted) {
  EXPECT_EQ(cancel_json("a-1"), "{\"accepted\":true,\"attempt_id\":\"a-1\"}\n");
}

TEST(DiffText, OnlyATerminalGetsItPrintable) {
  const std::string patch = "+\033]0;title\a\xFF\xE2\x80\xAE\tx\n";
  EXPECT_EQ(diff_text(patch, false), patch);
  const std::string shown = diff_text(patch, true);
  for (const char* hostile : {"\033", "\a", "\xFF", "\xE2\x80\xAE"}) {
    EXPECT_EQ(shown.find(hostile), std::string::npos);
  }
  EXPECT_NE(shown.find("\tx\n"), std::string::npos) << shown;
}

}  // namespace
}  // namespace cofferdam::cli
