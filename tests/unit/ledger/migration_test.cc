// Every older version's file, made by that version's own SQL, becomes one of the current version.
#include <SQLiteCpp/SQLiteCpp.h>

#include "ledger_fixture.h"

namespace cofferdam::ledger::testing {
namespace {

class MigrationTest : public LedgerTest {
 protected:
  void SetUp() override {
    LedgerTest::SetUp();
    const std::string source = std::string(COFFERDAM_SOURCE_DIR) + "/tests/unit/ledger/data/version_1.sql";
    auto sql = read_file(source, 1U << 20U);
    ASSERT_TRUE(sql) << sql.error().line();
    SQLite::Database db(path_, SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE);
    db.exec("PRAGMA journal_mode = WAL");
    db.exec(*sql);
    // The control: it is that version's file, and its results are not ours.
    ASSERT_EQ(db.execAndGet("PRAGMA user_version").getInt(), 1);
    const std::string result = db.execAndGet("SELECT result FROM attempts WHERE id = 'done'").getString();
    ASSERT_FALSE(contract::decode_result(result));
  }
};

TEST_F(MigrationTest, ChainsStayIntact) {
  Ledger ledger = open();
  auto attempts = ledger.list(10);
  ASSERT_TRUE(attempts);
  ASSERT_EQ(attempts->size(), 4U);
  EXPECT_EQ(attempts->front().id, "cut-off") << "the order of arrival is kept";
  EXPECT_EQ(attempts->back().id, "done");
  for (const Attempt& attempt : *attempts) {
    auto report = ledger.verify(attempt.id);
    ASSERT_TRUE(report) << report.error().line();
    EXPECT_TRUE(report->intact) << attempt.id << ": " << report->problem;
    EXPECT_GE(report->events, 5U);
  }
}

TEST_F(MigrationTest, ResultsAreReadAgain) {
  Ledger ledger = open();
  for (const char* id : {"done", "failing", "with-context"}) {
    const AttemptRecord found = record(ledger, id);
    ASSERT_TRUE(found.result.has_value()) << id;
    auto result = contract::decode_result(*found.result);
    ASSERT_TRUE(result) << id << ": " << result.error().line();
    EXPECT_EQ(result->outcome, found.attempt.outcome);
    EXPECT_FALSE(result->storage.has_value());
    EXPECT_EQ(found.stage, contract::Stage::finished);
    EXPECT_FALSE(found.waiting);
    EXPECT_FALSE(found.draft.has_value());
  }
  auto result = contract::decode_result(*record(ledger, "with-context").result);
  ASSERT_TRUE(result && result->context.has_value());
  EXPECT_EQ(result->context->version, 3U);
  EXPECT_TRUE(result->context->files.empty());
}

TEST_F(MigrationTest, WhatRanGoesOnInItsStage) {
  Ledger ledger = open();
  const AttemptRecord found = record(ledger, "cut-off");
  EXPECT_EQ(found.stage, contract::Stage::started);
  EXPECT_FALSE(found.attempt.finished);
  auto left = ledger.unfinished();
  ASSERT_TRUE(left);
  EXPECT_EQ(*left, std::vector<std::string>{"cut-off"});
  auto settled = ledger.append("cut-off", "settled", "{}");
  ASSERT_TRUE(settled) << settled.error().line();
  EXPECT_EQ(settled->seq, 6U);
}

TEST_F(MigrationTest, TheOldRulesHoldAgain) {
  { const Ledger ledger = open(); }
  SQLite::Database db(path_, SQLite::OPEN_READWRITE);
  EXPECT_EQ(db.execAndGet("PRAGMA user_version").getInt(), 2);
  EXPECT_EQ(db.execAndGet("PRAGMA integrity_check").getString(), "ok");
  EXPECT_THROW(db.exec("UPDATE attempts SET result = '{}' WHERE id = 'done'"), SQLite::Exception);
  EXPECT_THROW(db.exec("DELETE FROM events WHERE attempt_id = 'done'"), SQLite::Exception);
  EXPECT_THROW(db.exec("DELETE FROM attempts WHERE id = 'done'"), SQLite::Exception);
}

}  // namespace
}  // namespace cofferdam::ledger::testing
