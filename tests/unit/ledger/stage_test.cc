// Stages, drafts, several events at once, and what is left of a pruned attempt.
#include <SQLiteCpp/SQLiteCpp.h>

#include "ledger_fixture.h"

namespace cofferdam::ledger::testing {
namespace {

using contract::Stage;

TEST_F(LedgerTest, AnEventThatCannotComeIsRefusedAndLeavesNothing) {
  Ledger ledger = open();
  ASSERT_TRUE(ledger.admit(invocation("a-1"), 1));
  auto early = ledger.append("a-1", "agent", "{}");
  ASSERT_FALSE(early);
  EXPECT_EQ(early.error().code, Code::conflict);
  EXPECT_NE(early.error().what.find("\"none\""), std::string::npos) << early.error().what;
  EXPECT_NE(early.error().what.find("\"agent\""), std::string::npos) << early.error().what;
  auto events = ledger.events("a-1");
  ASSERT_TRUE(events);
  EXPECT_TRUE(events->empty());
  // The control: the same event, once the program runs.
  ASSERT_TRUE(
      ledger.append_all("a-1", {{"admitted"}, {"cloned"}, {"workspace-ready"}, {"box-ready"}, {"started"}}));
  EXPECT_TRUE(ledger.append("a-1", "agent", "{}"));
  EXPECT_EQ(record(ledger, "a-1").stage, Stage::started);
}

TEST_F(LedgerTest, OfSeveralEventsAllAreKeptOrNone) {
  Ledger ledger = open();
  ASSERT_TRUE(ledger.admit(invocation("a-1"), 1));
  EXPECT_FALSE(ledger.append_all("a-1", {{"admitted"}, {"cloned"}, {"finished"}}, "{}"));
  EXPECT_EQ(record(ledger, "a-1").stage, Stage::none);
  EXPECT_FALSE(record(ledger, "a-1").draft.has_value());
  auto both = ledger.append_all("a-1", {{"admitted"}, {"cloned"}});
  ASSERT_TRUE(both) << both.error().line();
  ASSERT_EQ(both->size(), 2U);
  EXPECT_EQ(both->back().seq, 2U);
  auto report = ledger.verify("a-1");
  ASSERT_TRUE(report);
  EXPECT_TRUE(report->intact) << report->problem;
}

TEST_F(LedgerTest, TheDraftIsThatOfTheLastStageAndGoesWithTheResult) {
  Ledger ledger = open();
  const auto request = invocation("a-1");
  ASSERT_TRUE(ledger.admit(request, 1));
  const std::string first = contract::encode_result(result_for(request, ""));
  ASSERT_TRUE(ledger.append("a-1", "admitted", "{}", first));
  ASSERT_TRUE(ledger.append("a-1", "cancel-requested", "{}"));
  EXPECT_EQ(record(ledger, "a-1").draft, first);
  ASSERT_TRUE(ledger.append_all("a-1", {{"settled"}, {"finished"}}));
  auto head = ledger.chain_head("a-1");
  ASSERT_TRUE(head);
  ASSERT_TRUE(ledger.finish(result_for(request, *head)));
  EXPECT_FALSE(record(ledger, "a-1").draft.has_value());
  EXPECT_EQ(record(ledger, "a-1").stage, Stage::finished);
}

TEST_F(LedgerTest, UnfinishedAreOldestFirst) {
  Ledger ledger = open();
  for (const char* id : {"a-3", "a-1", "a-2"}) ASSERT_TRUE(ledger.admit(invocation(id), 1));
  auto head = ledger.chain_head("a-1");
  ASSERT_TRUE(head);
  ASSERT_TRUE(ledger.finish(result_for(invocation("a-1"), *head)));
  auto left = ledger.unfinished();
  ASSERT_TRUE(left);
  EXPECT_EQ(*left, (std::vector<std::string>{"a-3", "a-2"}));
}

TEST_F(LedgerTest, AStageThatTheEventsDoNotLeadToIsFound) {
  Ledger ledger = open();
  ASSERT_TRUE(ledger.admit(invocation("a-1"), 1));
  ASSERT_TRUE(ledger.append_all("a-1", {{"admitted"}, {"cloned"}, {"cancel-requested"}}));
  expect_intact(ledger, "a-1");
  SQLite::Database(path_, SQLite::OPEN_READWRITE).exec("UPDATE attempts SET stage = 'published'");
  auto report = ledger.verify("a-1");
  ASSERT_TRUE(report);
  EXPECT_FALSE(report->intact);
  EXPECT_NE(report->problem.find("\"cloned\""), std::string::npos) << report->problem;
}

class TombstoneTest : public LedgerTest {
 protected:
  static constexpr const char* kBury =
      "INSERT INTO tombstones SELECT id, invocation_sha256, coalesce(outcome, 'lost'), invocation_sha256, 0, "
      "created_at, coalesce(finished_at, 0), 0 FROM attempts";
  void exec(const char* sql) const { SQLite::Database(path_, SQLite::OPEN_READWRITE).exec(sql); }
};

TEST_F(TombstoneTest, OnlyAFinishedAttemptGetsOneAndOnlyThenGoes) {
  Ledger ledger = open();
  const auto request = invocation("a-1");
  ASSERT_TRUE(ledger.admit(request, 1));
  ASSERT_TRUE(ledger.append("a-1", "admitted", "{}"));
  EXPECT_THROW(exec(kBury), SQLite::Exception) << "it has no result yet";
  auto head = ledger.chain_head("a-1");
  ASSERT_TRUE(head);
  ASSERT_TRUE(ledger.finish(result_for(request, *head)));
  EXPECT_THROW(exec("DELETE FROM events"), SQLite::Exception);
  EXPECT_THROW(exec("DELETE FROM attempts"), SQLite::Exception);
  exec(kBury);
  EXPECT_THROW(exec("UPDATE tombstones SET outcome = 'failed'"), SQLite::Exception);
  EXPECT_THROW(exec("DELETE FROM tombstones"), SQLite::Exception);
  EXPECT_THROW(exec("INSERT OR REPLACE INTO tombstones SELECT * FROM tombstones"), SQLite::Exception);
  exec("DELETE FROM events");
  exec("DELETE FROM attempts");

  auto found = ledger.find("a-1");
  ASSERT_TRUE(found);
  EXPECT_FALSE(found->has_value());
  EXPECT_EQ(ledger.append("a-1", "admitted", "{}").error().code, Code::not_found);
  Status again = ledger.admit(request, 2);
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, Code::conflict);
  EXPECT_NE(again.error().what.find("same invocation"), std::string::npos) << again.error().what;
  Status other = ledger.admit(invocation("a-1", "other"), 2);
  ASSERT_FALSE(other);
  EXPECT_NE(other.error().what.find("different invocation"), std::string::npos) << other.error().what;
  auto attempts = ledger.list(10);
  ASSERT_TRUE(attempts);
  EXPECT_TRUE(attempts->empty());
}

}  // namespace
}  // namespace cofferdam::ledger::testing
