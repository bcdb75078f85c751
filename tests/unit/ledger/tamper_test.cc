// Somebody edits the file itself. What the ledger alone can show is shown, with the place.
#include "finished_attempt.h"

namespace cofferdam::ledger::testing {
namespace {

struct Edit {
  const char* name;
  const char* sql;  // on the attempt "b"
  std::uint64_t event;
  const char* problem;
};

class Tamper : public LedgerTest, public ::testing::WithParamInterface<Edit> {};

TEST_P(Tamper, IsFoundInItsPlaceAndNowhereElse) {
  Ledger ledger = open();
  for (const char* id : {"a", "b", "c"}) finish_attempt(ledger, id);
  auto before = ledger.verify_all();
  ASSERT_TRUE(before) << before.error().line();
  ASSERT_EQ(before->attempts.size(), 3U);
  for (const ChainReport& one : before->attempts) {
    EXPECT_TRUE(one.intact) << one.problem;
    EXPECT_TRUE(one.finished);
    EXPECT_EQ(one.events, 5U);
  }
  tamper(path_, GetParam().sql);
  auto after = ledger.verify_all();
  ASSERT_TRUE(after) << after.error().line();
  ASSERT_EQ(after->attempts.size(), 3U);
  for (const ChainReport& one : after->attempts) {
    EXPECT_EQ(one.intact, one.attempt_id != "b") << one.attempt_id << ": " << one.problem;
    if (one.attempt_id != "b") continue;
    EXPECT_EQ(one.event, GetParam().event) << one.problem;
    EXPECT_NE(one.problem.find(GetParam().problem), std::string::npos) << one.problem;
  }
  auto alone = ledger.verify("b");
  ASSERT_TRUE(alone) << alone.error().line();
  EXPECT_FALSE(alone->intact);
}

INSTANTIATE_TEST_SUITE_P(
    Edits, Tamper,
    ::testing::Values(
        Edit{"DataFirst", R"(UPDATE events SET data = '{"n":9}' WHERE attempt_id = 'b' AND seq = 1)", 1,
             "event 1"},
        Edit{"DataMiddle", R"(UPDATE events SET data = '{"n":9}' WHERE attempt_id = 'b' AND seq = 3)", 3,
             "event 3"},
        Edit{"DataLast", R"(UPDATE events SET data = '{"n":9}' WHERE attempt_id = 'b' AND seq = 5)", 5,
             "event 5"},
        Edit{"SpacingOfData", R"(UPDATE events SET data = '{"n": 3}' WHERE attempt_id = 'b' AND seq = 3)", 3,
             "event 3"},
        Edit{"NoDataAtAll", "UPDATE events SET data = 'x' WHERE attempt_id = 'b' AND seq = 3", 3, "event 3"},
        Edit{"TimeFirst", "UPDATE events SET at = at + 1 WHERE attempt_id = 'b' AND seq = 1", 1, "event 1"},
        Edit{"TimeMiddle", "UPDATE events SET at = at - 1 WHERE attempt_id = 'b' AND seq = 3", 3, "event 3"},
        Edit{"TimeLast", "UPDATE events SET at = at + 1 WHERE attempt_id = 'b' AND seq = 5", 5, "event 5"},
        Edit{"TypeFirst", "UPDATE events SET type = 'queued' WHERE attempt_id = 'b' AND seq = 1", 1,
             "event 1"},
        Edit{"TypeMiddle", "UPDATE events SET type = 'agent' WHERE attempt_id = 'b' AND seq = 3", 3,
             "event 3"},
        Edit{"TypeLast", "UPDATE events SET type = 'settled' WHERE attempt_id = 'b' AND seq = 5", 5,
             "event 5"},
        Edit{"TypeThatIsNone", "UPDATE events SET type = char(27) WHERE attempt_id = 'b' AND seq = 3", 3,
             "event 3"},
        Edit{"HashFirst",
             "UPDATE events SET hash = replace(hash, 'a', 'b') WHERE attempt_id = 'b' AND seq = 1", 1,
             "event 1"},
        Edit{"HashMiddle", "UPDATE events SET hash = 'x' || hash WHERE attempt_id = 'b' AND seq = 3", 3,
             "event 3"},
        Edit{"HashLast", "UPDATE events SET hash = '' WHERE attempt_id = 'b' AND seq = 5", 5, "event 5"},
        Edit{"CutFirst", "DELETE FROM events WHERE attempt_id = 'b' AND seq = 1", 1, "event 1 is missing"},
        Edit{"CutMiddle", "DELETE FROM events WHERE attempt_id = 'b' AND seq = 3", 3, "event 3 is missing"},
        Edit{"CutLast", "DELETE FROM events WHERE attempt_id = 'b' AND seq = 5", 0, "another chain head"},
        Edit{"CutMiddleAndCloseTheGap",
             "DELETE FROM events WHERE attempt_id = 'b' AND seq = 3;"
             "UPDATE events SET seq = 3 WHERE attempt_id = 'b' AND seq = 4;"
             "UPDATE events SET seq = 4 WHERE attempt_id = 'b' AND seq = 5",
             3, "event 3"},
        Edit{"CutAll", "DELETE FROM events WHERE attempt_id = 'b'", 0, "another chain head"},
        Edit{"Swap",
             "UPDATE events SET seq = 9 WHERE attempt_id = 'b' AND seq = 2;"
             "UPDATE events SET seq = 2 WHERE attempt_id = 'b' AND seq = 3;"
             "UPDATE events SET seq = 3 WHERE attempt_id = 'b' AND seq = 9",
             2, "event 2"},
        Edit{"InsertBehind",
             "INSERT INTO events SELECT attempt_id, 6, at, type, data, hash FROM events"
             " WHERE attempt_id = 'b' AND seq = 5",
             6, "event 6"},
        Edit{"InsertBetween",
             "UPDATE events SET seq = 6 WHERE attempt_id = 'b' AND seq = 5;"
             "UPDATE events SET seq = 5 WHERE attempt_id = 'b' AND seq = 4;"
             "INSERT INTO events SELECT attempt_id, 4, at, type, data, hash FROM events"
             " WHERE attempt_id = 'b' AND seq = 3",
             4, "event 4"},
        Edit{"EventsOfAnother",
             "DELETE FROM events WHERE attempt_id = 'b';"
             "INSERT INTO events SELECT 'b', seq, at, type, data, hash FROM events WHERE attempt_id = 'c'",
             1, "event 1"},
        Edit{"Invocation",
             "UPDATE attempts SET invocation = replace(invocation, 'hello', 'other') WHERE id = 'b'", 0,
             "the invocation does not have its recorded SHA-256"},
        Edit{"InvocationHash",
             "UPDATE attempts SET invocation_sha256 = replace(invocation_sha256, 'a', 'b') || '' WHERE id = "
             "'b'",
             0, "the invocation does not have its recorded SHA-256"},
        Edit{"Repository", "UPDATE attempts SET repository = '/other' WHERE id = 'b'", 0,
             "does not repeat its invocation (clone/repository)"},
        Edit{"Head", "UPDATE attempts SET head = 'x' WHERE id = 'b'", 0,
             "does not repeat its invocation (clone/head)"},
        Edit{"Agent", "UPDATE attempts SET agent = 'claude' WHERE id = 'b'", 0,
             "does not repeat its invocation (agent/name)"},
        Edit{"Phase", "UPDATE attempts SET phase = 'review' WHERE id = 'b'", 0,
             "does not repeat its invocation (phase)"},
        Edit{"PhaseThatIsNone", "UPDATE attempts SET phase = 'x' WHERE id = 'b'", 0, "unknown phase"},
        Edit{"Outcome", "UPDATE attempts SET outcome = 'failed' WHERE id = 'b'", 0,
             "another outcome than its row"},
        Edit{"OutcomeThatIsNone", "UPDATE attempts SET outcome = 'x' WHERE id = 'b'", 0, "unknown outcome"},
        Edit{"OutcomeInBoth",
             "UPDATE attempts SET outcome = 'failed', result ="
             " replace(result, '\"outcome\":\"completed\"', '\"outcome\":\"failed\"') WHERE id = 'b'",
             0, "another outcome than event 5"},
        Edit{"ResultsText",
             "UPDATE attempts SET result = replace(result, 'as it was', 'as it was not') WHERE id = 'b'", 0,
             "SHA-256 that event 5 (finished) names"},
        Edit{"ResultsSpacing", "UPDATE attempts SET result = result || ' ' WHERE id = 'b'", 0, "SHA-256"},
        Edit{"ResultsHead",
             "UPDATE attempts SET result = json_set(result, '$.chain_head', replace(invocation_sha256, 'a', "
             "'b'))"
             " WHERE id = 'b'",
             0, "another chain head"},
        Edit{"ResultOfAnother",
             "UPDATE attempts SET result = (SELECT result FROM attempts WHERE id = 'c') WHERE id = 'b'", 0,
             "another chain head"},
        Edit{"NoResult", "UPDATE attempts SET result = '{}' WHERE id = 'b'", 0, "the result cannot be read"},
        Edit{"Row", "DELETE FROM attempts WHERE id = 'b'", 0, "its events are there, but the attempt is not"},
        Edit{"TombstoneBesideTheAttempt",
             "INSERT INTO tombstones SELECT id, invocation_sha256, outcome, invocation_sha256, 5, 1, 2, 3"
             " FROM attempts WHERE id = 'b'",
             0, "the attempt is there too"}),
    [](const auto& param_info) { return std::string(param_info.param.name); });

using Verify = LedgerTest;

TEST_F(Verify, ARemovedAttemptIsCounted) {
  Ledger ledger = open();
  for (const char* id : {"a", "b", "c"}) finish_attempt(ledger, id);
  EXPECT_EQ(ledger.verify_all()->missing, 0U);
  tamper(path_, "DELETE FROM events WHERE attempt_id = 'b'; DELETE FROM attempts WHERE id = 'b'");
  auto report = ledger.verify_all();
  ASSERT_TRUE(report);
  EXPECT_EQ(report->missing, 1U);
  EXPECT_EQ(report->attempts.size(), 2U);
}

TEST_F(Verify, ARunningAttemptIsIntactWithAnOpenEnd) {
  Ledger ledger = open();
  ASSERT_TRUE(ledger.admit(invocation("a"), 1));
  ASSERT_TRUE(ledger.append_all("a", {{"admitted"}, {"cancel-requested"}}));
  auto report = ledger.verify("a");
  ASSERT_TRUE(report);
  EXPECT_TRUE(report->intact) << report->problem;
  EXPECT_FALSE(report->finished);
  // What only somebody outside can see: docs/keeping.md.
  tamper(path_, "DELETE FROM events WHERE seq = 2");
  EXPECT_TRUE(ledger.verify("a")->intact);
}

using Prune = LedgerTest;

TEST_F(Prune, LeavesATombstoneAndNothingElse) {
  Ledger ledger = open();
  const contract::ResultRecord result = finish_attempt(ledger, "a");
  finish_attempt(ledger, "b");
  auto left = ledger.prune("a");
  ASSERT_TRUE(left) << left.error().line();
  EXPECT_EQ(left->attempt_id, "a");
  EXPECT_EQ(left->chain_head, result.chain_head);
  EXPECT_EQ(left->invocation_sha256, result.invocation_sha256);
  EXPECT_EQ(left->outcome, result.outcome);
  EXPECT_EQ(left->events, 5U);
  EXPECT_GE(left->pruned_at.ms, left->finished_at.ms);
  EXPECT_FALSE(ledger.find("a")->has_value());
  EXPECT_TRUE(ledger.events_after("a", 0, 100)->empty());
  EXPECT_TRUE(ledger.find_tombstone("a")->has_value());
  EXPECT_FALSE(ledger.find_tombstone("b")->has_value());
  EXPECT_TRUE(ledger.find("b")->has_value()) << "the one beside it";
  auto all = ledger.verify_all();
  ASSERT_TRUE(all);
  ASSERT_EQ(all->attempts.size(), 2U);
  EXPECT_TRUE(all->attempts[0].intact && all->attempts[0].pruned);
  EXPECT_EQ(all->missing, 0U);
  EXPECT_EQ(ledger.admit(invocation("a"), 1).error().code, Code::conflict);
  EXPECT_EQ(ledger.prune("a").error().code, Code::not_found);
}

TEST_F(Prune, RefusesWhatRunsAndWhatDoesNotHold) {
  Ledger ledger = open();
  ASSERT_TRUE(ledger.admit(invocation("a"), 1));
  EXPECT_EQ(ledger.prune("a").error().code, Code::conflict);
  EXPECT_EQ(ledger.prune("none").error().code, Code::not_found);
  finish_attempt(ledger, "b");
  tamper(path_, R"(UPDATE events SET data = '{"n":9}' WHERE attempt_id = 'b' AND seq = 3)");
  auto refused = ledger.prune("b");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::protocol);
  EXPECT_NE(refused.error().what.find("event 3"), std::string::npos) << refused.error().what;
  EXPECT_TRUE(ledger.find("b")->has_value()) << "it is kept, as it is";
}

TEST_F(Prune, AnEditedTombstoneIsFoundWhenItCannotBeOne) {
  Ledger ledger = open();
  finish_attempt(ledger, "a");
  ASSERT_TRUE(ledger.prune("a"));
  for (const char* edit : {"outcome = 'x'", "chain_head = 'x'", "invocation_sha256 = ''"}) {
    tamper(path_, "CREATE TABLE IF NOT EXISTS copy AS SELECT * FROM tombstones");
    tamper(path_, std::string("UPDATE tombstones SET ") + edit);
    EXPECT_FALSE(ledger.verify("a")->intact) << edit;
    EXPECT_FALSE(ledger.verify_all()->attempts.front().intact) << edit;
    tamper(path_, "DELETE FROM tombstones; INSERT INTO tombstones SELECT * FROM copy");
    EXPECT_TRUE(ledger.verify("a")->intact) << "the control";
  }
  // Any other edit of it is seen only by a copy of the result.
  tamper(path_, "UPDATE tombstones SET outcome = 'failed'");
  EXPECT_TRUE(ledger.verify("a")->intact);
}

using Follow = LedgerTest;

TEST_F(Follow, EventsComeInPartsAndChangesAreSeen) {
  Ledger reader = open();
  Ledger writer = open();
  ASSERT_TRUE(writer.admit(invocation("a"), 1));
  const auto version = reader.data_version();
  ASSERT_TRUE(version);
  EXPECT_EQ(*reader.data_version(), *version);
  ASSERT_TRUE(writer.append_all("a", {{"admitted"}, {"cancel-requested"}, {"cancel-requested"}}));
  EXPECT_NE(*reader.data_version(), *version);
  EXPECT_EQ(reader.events_after("a", 0, 2)->size(), 2U);
  auto rest = reader.events_after("a", 2, 2);
  ASSERT_TRUE(rest);
  ASSERT_EQ(rest->size(), 1U);
  EXPECT_EQ(rest->front().seq, 3U);
  EXPECT_TRUE(reader.events_after("a", 3, 2)->empty());
  EXPECT_TRUE(reader.events_after("none", 0, 2)->empty());
}

}  // namespace
}  // namespace cofferdam::ledger::testing
