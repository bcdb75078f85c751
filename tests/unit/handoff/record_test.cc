// The decoders against records that a hostile box could write: every cut and every change of one byte is an
// error or the same kind of record, never a crash or a guess.
#include "handoff/record.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "handoff/collect.h"
#include "handoff/snapshot.h"

namespace {

using cofferdam::Code;
using cofferdam::handoff::decode_collect;
using cofferdam::handoff::decode_snapshot;

std::string record(const std::vector<std::string>& fields) {
  std::string out;
  for (const std::string& field : fields) out += field + '\0';
  return out;
}

const std::string kTree(40, 'a');

std::vector<std::string> snapshot_fields() {
  return {"cofferdam-snapshot/1", "tree",    kTree,   "objects", "3", "ignored", "0", "finding",
          "nested-git",           "dropped", "a\n/b", "more",    "0", "end"};
}

const std::string kChange = ":100644 100755 " + kTree + " " + kTree + " M";

std::vector<std::string> collect_fields() {
  return {"cofferdam-collect/1",
          "pack-bytes",
          "100",
          "objects",
          "3",
          "inflated",
          "7",
          "changes",
          kChange,
          "a/b",
          "links",
          "0",
          "beside",
          "4",
          "a",
          "b",
          "end"};
}

TEST(Record, GoodOnesAreRead) {
  auto snapshot = decode_snapshot(record(snapshot_fields()));
  ASSERT_TRUE(snapshot) << snapshot.error().what;
  EXPECT_EQ(snapshot->tree, kTree);
  EXPECT_EQ(snapshot->findings.at(0).path, "a\n/b");
  auto collected = decode_collect(record(collect_fields()));
  ASSERT_TRUE(collected) << collected.error().what;
  EXPECT_EQ(collected->changes.at(0).file.status, "modified");
  EXPECT_EQ(collected->beside, (std::vector<std::string>{"a", "b"}));
}

TEST(Record, EveryCutIsAnError) {
  for (const std::string& whole : {record(snapshot_fields()), record(collect_fields())}) {
    for (std::size_t size = 0; size < whole.size(); ++size) {
      auto snapshot = decode_snapshot(whole.substr(0, size));
      ASSERT_FALSE(snapshot);
      EXPECT_EQ(snapshot.error().code, Code::protocol);
      ASSERT_FALSE(decode_collect(whole.substr(0, size)));
    }
    EXPECT_FALSE(decode_snapshot(whole + "x"));
    EXPECT_FALSE(decode_collect(whole + '\0'));
  }
}

TEST(Record, EveryFieldIsChecked) {
  // Any field replaced by what fits nowhere; only paths may be any text.
  for (std::size_t i = 0; i < snapshot_fields().size(); ++i) {
    auto fields = snapshot_fields();
    fields[i] = "\x1b[31m";
    EXPECT_EQ(static_cast<bool>(decode_snapshot(record(fields))), i == 10) << i;
  }
  for (std::size_t i = 0; i < collect_fields().size(); ++i) {
    auto fields = collect_fields();
    fields[i] = "\x1b[31m";
    EXPECT_EQ(static_cast<bool>(decode_collect(record(fields))), i == 9) << i;
  }
}

TEST(Record, NumbersAreCanonicalAndBounded) {
  for (const char* bad : {"", "-1", "+1", " 1", "01", "1 ", "0x1", "1234567890123456789", "1e3"}) {
    auto fields = snapshot_fields();
    fields[4] = bad;
    EXPECT_FALSE(decode_snapshot(record(fields))) << bad;
  }
}

TEST(Record, PathsThatAreNotPlainAreDenied) {
  for (const char* bad :
       {"/abs", "../up", "a/../b", "a//b", "a/", ".", "a/./b", ".git/config", "a/.git/hooks/x"}) {
    auto fields = collect_fields();
    fields[9] = bad;
    auto collected = decode_collect(record(fields));
    ASSERT_FALSE(collected) << bad;
    EXPECT_EQ(collected.error().code, Code::denied);
  }
}

TEST(Record, ChangesAreChecked) {
  const std::string ids = " " + kTree + " " + kTree + " ";
  for (const std::string& bad :
       {":100644 040000" + ids + "M", ":100644 100777" + ids + "M", ":100644 100644" + ids + "R100",
        ":100644 100644" + ids + "X", "100644 100644" + ids + "M", ":100644 100644 " + kTree + " M",
        ":100644 100644 " + kTree + " abc M", ":160000 000000" + ids + "D", ":000000 160000" + ids + "A"}) {
    auto fields = collect_fields();
    fields[8] = bad;
    EXPECT_FALSE(decode_collect(record(fields))) << bad;
  }
}

TEST(Record, RefusalsAreErrorsWithTheirReason) {
  auto refused =
      decode_snapshot(record({"cofferdam-snapshot/1", "refused", "file-size", "a\x1b[2Jb", "end"}));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::exhausted);
  EXPECT_EQ(refused.error().what.find('\x1b'), std::string::npos);
  refused = decode_snapshot(record({"cofferdam-snapshot/1", "refused", "whatever", "", "end"}));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::protocol);
}

TEST(Record, FindingsBeyondTheBoundAreAnError) {
  std::vector<std::string> fields = {"cofferdam-snapshot/1", "tree", kTree, "objects", "1", "ignored", "0"};
  for (int i = 0; i < 201; ++i) fields.insert(fields.end(), {"finding", "set-id", "reported", "x"});
  fields.insert(fields.end(), {"more", "0", "end"});
  EXPECT_FALSE(decode_snapshot(record(fields)));
}

// The profiles say what the box must be: nothing that a snapshot or collect box does not need.
TEST(Profiles, AreSealedAndReadOnly) {
  using cofferdam::contract::Access;
  cofferdam::handoff::SnapshotInput snapshot;
  snapshot.base_tree = kTree;
  snapshot.stdout_fd = 7;
  auto profile = snapshot_profile(snapshot);
  EXPECT_EQ(profile.work, Access::read_only);
  EXPECT_EQ(profile.metadata, Access::read_only);
  EXPECT_EQ(profile.output, Access::read_write);
  EXPECT_TRUE(profile.listeners.empty());
  EXPECT_TRUE(profile.agent_dir.empty());
  ASSERT_EQ(profile.fds.size(), 1U);
  cofferdam::handoff::CollectInput collect;
  collect.base_tree = collect.tree = kTree;
  collect.pack_fd = 8;
  collect.index_fd = 9;
  profile = collect_profile(collect);
  EXPECT_EQ(profile.work, Access::none);
  EXPECT_EQ(profile.metadata, Access::read_only);
  EXPECT_EQ(profile.output, Access::read_only);
  EXPECT_GT(profile.file_size_limit, 0U);
  ASSERT_EQ(profile.fds.size(), 2U);
  EXPECT_EQ(profile.fds[0].target, 3);
  EXPECT_EQ(profile.fds[1].target, 4);
}

}  // namespace
