#include <SQLiteCpp/SQLiteCpp.h>
#include <sys/stat.h>

#include "base/sha256.h"
#include "ledger_fixture.h"

namespace cofferdam::ledger::testing {
namespace {

// A connection that knows nothing of our rules, as an editor of the file would have.
SQLite::Database raw(const std::string& path) {
  return {path, SQLite::OPEN_READWRITE, 10'000};
}

// The message with which SQLite refuses `sql`, empty when it does not.
std::string refusal(const std::string& path, const char* sql) {
  SQLite::Database db = raw(path);
  try {
    db.exec(sql);
    return {};
  } catch (const SQLite::Exception& exception) {
    return exception.what();
  }
}

TEST_F(LedgerTest, FileIsPrivateAndUsesWriteAheadLogging) {
  Ledger ledger = open();
  struct stat info {};
  ASSERT_EQ(::stat(path_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777U, 0600U);
  EXPECT_EQ(raw(path_).execAndGet("PRAGMA journal_mode").getString(), "wal");
  EXPECT_EQ(raw(path_).execAndGet("PRAGMA user_version").getInt(), 2);
}

TEST_F(LedgerTest, AdmittedAttemptIsFoundAgainAfterReopening) {
  const auto request = invocation("a-1");
  ASSERT_TRUE(open().admit(request, 4711));
  Ledger ledger = open();
  auto found = ledger.find("a-1");
  ASSERT_TRUE(found) << found.error().line();
  ASSERT_TRUE(found->has_value());
  const AttemptRecord& record = **found;
  EXPECT_EQ(record.invocation, request.canonical());
  EXPECT_EQ(record.attempt.invocation_sha256, request.sha256());
  EXPECT_EQ(record.attempt.agent, "command");
  EXPECT_EQ(record.attempt.repository, "/srv/repository");
  EXPECT_EQ(record.attempt.phase, contract::Phase::implementation);
  EXPECT_EQ(record.attempt.supervisor_pid, 4711);
  EXPECT_FALSE(record.attempt.finished);
  EXPECT_FALSE(record.result.has_value());
  auto missing = ledger.find("a-2");
  ASSERT_TRUE(missing);
  EXPECT_FALSE(missing->has_value());
}

TEST_F(LedgerTest, AttemptIdIsUsedOnce) {
  Ledger ledger = open();
  ASSERT_TRUE(ledger.admit(invocation("a-1", "one"), 1));
  Status same = ledger.admit(invocation("a-1", "one"), 2);
  ASSERT_FALSE(same);
  EXPECT_EQ(same.error().code, Code::conflict);
  EXPECT_NE(same.error().line().find("same invocation"), std::string::npos) << same.error().line();
  Status different = ledger.admit(invocation("a-1", "two"), 2);
  ASSERT_FALSE(different);
  EXPECT_EQ(different.error().code, Code::conflict);
  EXPECT_NE(different.error().line().find("different invocation"), std::string::npos)
      << different.error().line();
  auto found = ledger.find("a-1");
  ASSERT_TRUE(found && found->has_value());
  EXPECT_EQ((*found)->attempt.supervisor_pid, 1) << "the first one's row is untouched";
}

TEST_F(LedgerTest, EventsAreNumberedAndChainedFromTheInvocation) {
  Ledger ledger = open();
  const auto request = invocation("a-1");
  ASSERT_TRUE(ledger.admit(request, 1));
  auto head = ledger.chain_head("a-1");
  ASSERT_TRUE(head);
  EXPECT_EQ(*head, request.sha256());

  std::string expected = request.sha256();
  for (std::uint64_t seq = 1; seq <= 3; ++seq) {
    auto event =
        ledger.append("a-1", seq == 1 ? "admitted" : "cancel-requested", R"({ "text": "x",  "n": 1 })");
    ASSERT_TRUE(event) << event.error().line();
    EXPECT_EQ(event->seq, seq);
    EXPECT_EQ(event->data, R"({"n":1,"text":"x"})") << "stored canonically";
    expected = sha256_hex(expected + "\n" + contract::encode_event(*event));
  }
  head = ledger.chain_head("a-1");
  ASSERT_TRUE(head);
  EXPECT_EQ(*head, expected);
  auto events = ledger.events("a-1");
  ASSERT_TRUE(events);
  EXPECT_EQ(events->size(), 3U);
  auto report = ledger.verify("a-1");
  ASSERT_TRUE(report);
  EXPECT_TRUE(report->intact) << report->problem;
  EXPECT_EQ(report->head, expected);
  EXPECT_EQ(report->events, 3U);
}

TEST_F(LedgerTest, UnknownAttemptIsNotFound) {
  Ledger ledger = open();
  EXPECT_EQ(ledger.append("a-9", "agent", "{}").error().code, Code::not_found);
  EXPECT_EQ(ledger.chain_head("a-9").error().code, Code::not_found);
  EXPECT_EQ(ledger.events("a-9").error().code, Code::not_found);
  EXPECT_EQ(ledger.verify("a-9").error().code, Code::not_found);
  EXPECT_EQ(ledger.finish(result_for(invocation("a-9"), std::string(64, '0'))).error().code, Code::not_found);
}

TEST_F(LedgerTest, ResultIsWrittenOnceAndEndsTheAccount) {
  Ledger ledger = open();
  const auto request = invocation("a-1");
  ASSERT_TRUE(ledger.admit(request, 1));
  ASSERT_TRUE(ledger.append_all("a-1", {{"admitted"}, {"settled"}, {"finished"}}));
  auto head = ledger.chain_head("a-1");
  ASSERT_TRUE(head);
  const auto result = result_for(request, *head);
  Status finished = ledger.finish(result);
  ASSERT_TRUE(finished) << finished.error().line();
  EXPECT_EQ(ledger.finish(result).error().code, Code::conflict);
  EXPECT_EQ(ledger.append("a-1", "agent", "{}").error().code, Code::conflict);

  auto found = ledger.find("a-1");
  ASSERT_TRUE(found && found->has_value());
  EXPECT_TRUE((*found)->attempt.finished);
  EXPECT_EQ((*found)->attempt.outcome, contract::Outcome::completed);
  EXPECT_EQ((*found)->result, contract::encode_result(result));
  auto report = ledger.verify("a-1");
  ASSERT_TRUE(report);
  EXPECT_TRUE(report->intact) << report->problem;
}

TEST_F(LedgerTest, ResultMustNameTheChainAsItIs) {
  Ledger ledger = open();
  const auto request = invocation("a-1");
  ASSERT_TRUE(ledger.admit(request, 1));
  ASSERT_TRUE(ledger.append("a-1", "admitted", "{}"));
  auto stale = ledger.chain_head("a-1");
  ASSERT_TRUE(stale);
  ASSERT_TRUE(ledger.append("a-1", "cloned", "{}"));
  EXPECT_EQ(ledger.finish(result_for(request, *stale)).error().code, Code::conflict);
  auto head = ledger.chain_head("a-1");
  ASSERT_TRUE(head);
  EXPECT_EQ(ledger.finish(result_for(invocation("a-1", "other"), *head)).error().code, Code::internal);
  EXPECT_TRUE(ledger.finish(result_for(request, *head)));
}

TEST_F(LedgerTest, ListIsNewestFirstAndBounded) {
  Ledger ledger = open();
  for (const char* id : {"a-1", "a-2", "a-3"}) ASSERT_TRUE(ledger.admit(invocation(id), 1));
  auto all = ledger.list(10);
  ASSERT_TRUE(all);
  ASSERT_EQ(all->size(), 3U);
  EXPECT_EQ(all->front().id, "a-3");
  auto two = ledger.list(2);
  ASSERT_TRUE(two);
  EXPECT_EQ(two->size(), 2U);
}

TEST_F(LedgerTest, TheSchemaItselfIsAppendOnly) {
  Ledger ledger = open();
  const auto request = invocation("a-1");
  ASSERT_TRUE(ledger.admit(request, 1));
  ASSERT_TRUE(ledger.append("a-1", "admitted", "{}"));
  EXPECT_NE(refusal(path_, "UPDATE events SET type = 'x'").find("append-only"), std::string::npos);
  EXPECT_NE(refusal(path_, "DELETE FROM events").find("append-only"), std::string::npos);
  EXPECT_NE(refusal(path_, "DELETE FROM attempts").find("never deleted"), std::string::npos);
  EXPECT_NE(refusal(path_, "UPDATE attempts SET repository = '/x'").find("immutable"), std::string::npos);
  EXPECT_NE(refusal(path_, "INSERT OR REPLACE INTO events SELECT * FROM events"), "");
  EXPECT_NE(refusal(path_, "INSERT INTO events SELECT attempt_id, 7, at, type, data, hash FROM events"), "");
  EXPECT_NE(refusal(path_, "UPDATE attempts SET outcome = 'completed'"), "") << "an outcome without a result";

  auto head = ledger.chain_head("a-1");
  ASSERT_TRUE(head);
  ASSERT_TRUE(ledger.finish(result_for(request, *head)));
  EXPECT_NE(refusal(path_, "UPDATE attempts SET outcome = 'failed'").find("written once"), std::string::npos);
  EXPECT_NE(refusal(path_, "INSERT INTO events SELECT attempt_id, 2, at, type, data, hash FROM events")
                .find("no more events"),
            std::string::npos);
}

// Each edit goes around the triggers, as somebody with the file in hand can.
struct Edit {
  const char* name;
  const char* sql;
  const char* problem;
};

class EditTest : public LedgerTest, public ::testing::WithParamInterface<Edit> {};

TEST_P(EditTest, IsFoundByVerify) {
  Ledger ledger = open();
  const auto request = invocation("a-1");
  ASSERT_TRUE(ledger.admit(request, 1));
  ASSERT_TRUE(ledger.append_all(
      "a-1",
      {{"admitted", R"({"n":1})"}, {"cancel-requested", R"({"n":2})"}, {"cancel-requested", R"({"n":3})"}}));
  auto head = ledger.chain_head("a-1");
  ASSERT_TRUE(head);
  ASSERT_TRUE(ledger.finish(result_for(request, *head)));
  auto before = ledger.verify("a-1");
  ASSERT_TRUE(before);
  ASSERT_TRUE(before->intact) << before->problem;

  SQLite::Database db = raw(path_);
  db.exec(
      "DROP TRIGGER events_are_never_changed; DROP TRIGGER events_are_never_deleted;"
      "DROP TRIGGER attempts_are_immutable; DROP TRIGGER attempts_have_one_result");
  db.exec(GetParam().sql);
  auto after = ledger.verify("a-1");
  ASSERT_TRUE(after) << after.error().line();
  EXPECT_FALSE(after->intact);
  EXPECT_NE(after->problem.find(GetParam().problem), std::string::npos) << after->problem;
}

INSTANTIATE_TEST_SUITE_P(
    Edits, EditTest,
    ::testing::Values(Edit{"Data", R"(UPDATE events SET data = '{"n":9}' WHERE seq = 2)", "event 2"},
                      Edit{"Spacing", R"(UPDATE events SET data = '{"n": 2}' WHERE seq = 2)", "event 2"},
                      Edit{"Time", "UPDATE events SET at = at + 1 WHERE seq = 1", "event 1"},
                      Edit{"Type", "UPDATE events SET type = 'settled' WHERE seq = 3", "event 3"},
                      Edit{"CutMiddle", "DELETE FROM events WHERE seq = 2", "event 2 is missing"},
                      Edit{"CutTail", "DELETE FROM events WHERE seq = 3", "another chain head"},
                      Edit{"Swap",
                           "UPDATE events SET seq = 9 WHERE seq = 1; UPDATE events SET seq = 1 WHERE seq = 2;"
                           "UPDATE events SET seq = 2 WHERE seq = 9",
                           "event 1"},
                      Edit{"Invocation", "UPDATE attempts SET invocation = '{}'", "invocation"},
                      Edit{"Outcome", "UPDATE attempts SET outcome = 'failed'", "outcome"}),
    [](const auto& param_info) { return std::string(param_info.param.name); });

TEST_F(LedgerTest, NewerVersionIsRefusedAndLeftAlone) {
  { Ledger ledger = open(); }
  raw(path_).exec("PRAGMA user_version = 3");
  auto opened = Ledger::open(path_);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, Code::config);
  EXPECT_NE(opened.error().what.find("made by a newer version"), std::string::npos) << opened.error().what;
  EXPECT_EQ(raw(path_).execAndGet("PRAGMA user_version").getInt(), 3);
}

TEST_F(LedgerTest, SomethingElseThanALedgerIsAnError) {
  ASSERT_TRUE(write_file_atomic(path_, std::string(4096, 'x')));
  auto opened = Ledger::open(path_);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, Code::protocol) << opened.error().line();
  auto nowhere = Ledger::open(folder_->path() + "/missing/ledger.db");
  ASSERT_FALSE(nowhere);
}

TEST_F(LedgerTest, WhatIsNoJsonObjectIsKeptAsText) {
  Ledger ledger = open();
  ASSERT_TRUE(ledger.admit(invocation("a-1"), 1));
  ASSERT_TRUE(ledger.append("a-1", "admitted", "{}"));
  for (const char* data : {"", "[]", "1", "{", R"({"a":1,"a":2})", "\xff"}) {
    auto event = ledger.append("a-1", "cancel-requested", data);
    ASSERT_TRUE(event) << data << ": " << event.error().line();
    EXPECT_NE(event->data.find("unreadable"), std::string::npos) << event->data;
  }
  EXPECT_FALSE(ledger.append("a-1", "no-such-type", "{}"));
  auto report = ledger.verify("a-1");
  ASSERT_TRUE(report);
  EXPECT_TRUE(report->intact) << report->problem;
  EXPECT_EQ(report->events, 7U);
}

}  // namespace
}  // namespace cofferdam::ledger::testing
