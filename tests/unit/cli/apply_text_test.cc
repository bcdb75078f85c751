#include "cli/apply_text.h"

#include <gtest/gtest.h>

namespace cofferdam::cli {
namespace {

ApplyText sample() {
  ApplyText text;
  text.attempt_id = "work";
  text.kind = "merge";
  text.branch = "refs/heads/main";
  text.from = std::string(40, 'a');
  text.files.push_back({"odd\n\x1b[31mname", "added"});
  return text;
}

TEST(ApplyText, SaysWhatWasDoneAndHowToUndoIt) {
  ApplyText text = sample();
  text.applied = true;
  text.to = std::string(40, 'b');
  EXPECT_EQ(apply_text(text),
            "applied    work to main: aaaaaaaaaaaa -> bbbbbbbbbbbb (merge)\n"
            "  added        odd \xEF\xBF\xBD[31mname\n"
            "undo       git reset --keep aaaaaaaaaaaa\n");
}

// Nothing that an agent chose reaches a terminal as it is.
TEST(ApplyText, EscapesWhatIsNotText) {
  ApplyText text = sample();
  text.stopped.push_back({"dirty", "a\x1b]0;x\x07 b", "detail\r\n\xe2\x80\xae"});
  text.notes.emplace_back("note\x1b");
  const std::string out = apply_text(text);
  EXPECT_EQ(out.find('\x1b'), std::string::npos);
  EXPECT_EQ(out.find('\r'), std::string::npos);
  EXPECT_EQ(out.find("\xe2\x80\xae"), std::string::npos);
  EXPECT_NE(out.find("nothing was touched"), std::string::npos);
}

TEST(ApplyText, JsonIsOneLine) {
  const std::string out = apply_json(sample());
  EXPECT_EQ(out.find('\n'), out.size() - 1);
  EXPECT_NE(out.find("\"applied\":false"), std::string::npos) << out;
  EXPECT_NE(out.find("\"to\":null"), std::string::npos) << out;
}

}  // namespace
}  // namespace cofferdam::cli
