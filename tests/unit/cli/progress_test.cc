#include "cli/progress.h"

#include <gtest/gtest.h>

#include "base/fd.h"
#include "base/io.h"
#include "cli/source_notes.h"

namespace cofferdam::cli {
namespace {

contract::Event event(const char* type, const char* data, std::int64_t ms = 1000) {
  return {"a-1", 1, Timestamp{ms}, type, data};
}

std::string shown(bool terminal, const std::vector<contract::Event>& events) {
  auto pipe = make_pipe();
  EXPECT_TRUE(pipe);
  {
    Progress progress(pipe->write.get(), terminal);
    for (const auto& one : events) progress.show(one);
  }
  pipe->write.reset();
  return *read_to_end(pipe->read.get(), 1U << 20U);
}

TEST(Progress, PlainLinesHaveTheTimeSinceTheStart) {
  EXPECT_EQ(shown(false,
                  {event("admitted", R"({"sha256":"ab"})", 1000),
                   event("agent", R"({"kind":"message","text":"Looking."})", 3500),
                   event("egress", R"({"denied":false,"path":"/v1/messages"})", 4000),
                   event("egress", R"({"denied":true,"method":"GET","path":"/x","rule":"no-route"})", 5000)}),
            "    0.0s  admitted: sha256 ab\n"
            "    2.5s  agent: Looking.\n"
            "    4.0s  denied: GET /x (no-route)\n");
}

TEST(Progress, TerminalRewritesPassingLines) {
  EXPECT_EQ(shown(true, {event("agent", R"({"kind":"message","text":"one"})"),
                         event("agent", R"({"kind":"message","text":"two"})"), event("settled", "{}")}),
            "    0.0s  agent: one\r\033[K    0.0s  agent: two\r\033[K    0.0s  settled\n");
}

TEST(DescribeEvent, ToolCallsNameWhatTheyTouch) {
  EXPECT_EQ(
      describe_event(
          event("agent", R"({"kind":"tool-call","data":{"name":"Edit","input":{"file_path":"src/a.c"}}})"))
          .text,
      "agent: Edit src/a.c");
  EXPECT_EQ(describe_event(event("agent", R"({"kind":"reasoning","text":"hm"})")).weight, Weight::skip);
  EXPECT_EQ(describe_event(event("agent", R"({"kind":"error","text":"no credit"})")).text,
            "agent error: no credit");
}

TEST(DescribeEvent, FullIdsAreShortened) {
  const std::string data = R"({"bytes":7,"head":")" + std::string(40, 'a') + R"("})";
  EXPECT_EQ(describe_event(event("cloned", data.c_str())).text, "cloned: bytes 7, head aaaaaaaaaaaa");
}

TEST(SourceNotes, SayWhatIsNotPartOfIt) {
  const auto notes = [](const char* data, bool taken = false) {
    return source_notes(contract::Json::parse(data), taken);
  };
  using Lines = std::vector<std::string>;
  EXPECT_EQ(notes(R"({"dirty_files":0,"shallow":false})"), Lines{});
  EXPECT_EQ(notes(R"({"dirty_files":3,"untracked_files":1,"submodules":2,"lfs_files":1,
                      "shallow":true})"),
            (Lines{"3 changed files are not part of this: --include-dirty takes them along",
                   "1 untracked file is not part of this", "1 LFS file: pointers stay pointers",
                   "2 submodules are not entered", "the repository is a shallow clone"}));
  EXPECT_EQ(notes(R"({"dirty_files":3,"untracked_files":1})", true), Lines{}) << "they are part of it";
  for (const char* odd : {"[]", "{}", R"({"dirty_files":-1,"lfs_files":"7","shallow":1})"}) {
    EXPECT_EQ(notes(odd), Lines{}) << odd;
  }
}

TEST(SourceNotes, SayWhereUncommittedFilesArePartOfIt) {
  const auto note = [](const char* data) { return base_note(contract::Json::parse(data)); };
  EXPECT_EQ(note(R"({"head":"a","base":"b"})"), "uncommitted changes are part of this, as the commit b");
  EXPECT_EQ(note(R"({"head":"a","base":"a"})"), std::nullopt);
  EXPECT_EQ(describe_event(event("cloned", R"({"base":"a","head":"a","history":"full"})")).text,
            "cloned: head a, history full");
}

TEST(DescribeEvent, HostileTextStaysOnItsLine) {
  for (const char* data : {R"({"kind":"message","text":"a\nb\u001b[2J"})",
                           R"({"kind":"tool-call","name":{}})", "not json", "[]", R"({"kind":7})"}) {
    const EventText described = describe_event(event("agent", data));
    EXPECT_EQ(described.text.find('\n'), std::string::npos);
    EXPECT_EQ(described.text.find('\x1b'), std::string::npos);
  }
}

}  // namespace
}  // namespace cofferdam::cli
