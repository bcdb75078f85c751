// What only a copy of the result can show, and how it is told.
#include "cli/verify_report.h"

#include "contract/json.h"
#include "unit/ledger/finished_attempt.h"

namespace cofferdam::cli {
namespace {

using contract::ResultRecord;
using ledger::testing::finish_attempt;
using ledger::testing::tamper;

class VerifyReport : public ledger::testing::LedgerTest {
 protected:
  std::string compare(const ResultRecord& printed) {
    ledger::Ledger ledger = open();
    auto record = ledger.find("a");
    EXPECT_TRUE(record);
    if (record && record->has_value()) return compare_record(printed, **record);
    auto tombstone = ledger.find_tombstone("a");
    EXPECT_TRUE(tombstone && tombstone->has_value());
    return compare_tombstone(printed, **tombstone);
  }
  bool chain_holds() {
    ledger::Ledger ledger = open();
    return ledger.verify("a")->intact;
  }
};

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST_F(VerifyReport, TheSameResultIsTheSame) {
  ledger::Ledger ledger = open();
  const ResultRecord printed = finish_attempt(ledger, "a");
  EXPECT_EQ(compare(printed), "");
  ASSERT_TRUE(ledger.prune("a"));
  EXPECT_EQ(compare(printed), "");
}

TEST_F(VerifyReport, AnAttemptThatWasWrittenAnewShowsOnlyHere) {
  ledger::Ledger ledger = open();
  const ResultRecord printed = finish_attempt(ledger, "a");
  tamper(path_, "DELETE FROM events; DELETE FROM attempts");
  finish_attempt(ledger, "a");
  EXPECT_TRUE(chain_holds());
  EXPECT_TRUE(has(compare(printed), "chain head"));
  tamper(path_, "DELETE FROM events; DELETE FROM attempts");
  finish_attempt(ledger, "a", "other");
  EXPECT_TRUE(chain_holds());
  EXPECT_TRUE(has(compare(printed), "is of invocation"));
}

TEST_F(VerifyReport, ACutTailOfARunningAttemptShowsOnlyHere) {
  ledger::Ledger ledger = open();
  const ResultRecord printed = finish_attempt(ledger, "a");
  tamper(path_,
         "UPDATE attempts SET state = 'running', outcome = NULL, result = NULL, finished_at = NULL,"
         " stage = 'admitted';"
         "DELETE FROM events WHERE seq > 2");
  EXPECT_TRUE(chain_holds());
  EXPECT_TRUE(has(compare(printed), "the ledger has none"));
}

TEST_F(VerifyReport, ADifferenceIsNamed) {
  ledger::Ledger ledger = open();
  const ResultRecord printed = finish_attempt(ledger, "a");
  ResultRecord other = printed;
  other.summary = "something else";
  EXPECT_TRUE(has(compare(other), "differs from the ledger's in \"summary\"")) << compare(other);
  other = printed;
  other.outcome = contract::Outcome::failed;
  EXPECT_TRUE(has(compare(other), "says failed, the ledger says completed")) << compare(other);
}

TEST_F(VerifyReport, EveryFactOfATombstone) {
  ledger::Ledger ledger = open();
  const ResultRecord printed = finish_attempt(ledger, "a");
  ASSERT_TRUE(ledger.prune("a"));
  const std::string zeros(64, '0');
  for (const auto& [column, value, part] :
       {std::tuple{"outcome", std::string("failed"), "the ledger says failed"},
        {"chain_head", zeros, "chain head"},
        {"invocation_sha256", zeros, "invocation"}}) {
    tamper(path_, std::string("CREATE TABLE copy AS SELECT * FROM tombstones; UPDATE tombstones SET ") +
                      column + " = '" + value + "'");
    EXPECT_TRUE(chain_holds()) << column;
    EXPECT_TRUE(has(compare(printed), part)) << column << ": " << compare(printed);
    tamper(path_, "DELETE FROM tombstones; INSERT INTO tombstones SELECT * FROM copy; DROP TABLE copy");
    EXPECT_EQ(compare(printed), "");
  }
}

TEST_F(VerifyReport, ReadsWhatAVerbPrinted) {
  ledger::Ledger ledger = open();
  const ResultRecord printed = finish_attempt(ledger, "a");
  const std::string line = contract::encode_result(printed);
  for (const std::string& text : {line, line + "\n", "{\"an\":\"event\"}\n" + line + "\n\n"}) {
    auto read = decode_printed(text);
    ASSERT_TRUE(read) << read.error().line();
    EXPECT_EQ(contract::encode_result(*read), line);
  }
  for (const std::string& text : {std::string(), std::string("{}"), line + "\n{}", line.substr(1)}) {
    auto read = decode_printed(text);
    ASSERT_FALSE(read) << text;
    EXPECT_EQ(read.error().code, Code::usage);
  }
}

TEST_F(VerifyReport, TextAndJsonSayWhere) {
  ledger::Ledger ledger = open();
  for (const char* id : {"a", "b"}) finish_attempt(ledger, id);
  ASSERT_TRUE(ledger.admit(ledger::testing::invocation("c"), 1));
  auto report = ledger.verify_all();
  ASSERT_TRUE(report);
  EXPECT_TRUE(all_intact(*report));
  EXPECT_EQ(verify_text(*report), "intact: 3 attempts, 1 running (their ends are open), 10 events\n");
  tamper(path_,
         "UPDATE events SET type = char(27) || '[2J' WHERE attempt_id = 'b' AND seq = 3;"
         "DELETE FROM attempts WHERE id = 'c'");
  report = ledger.verify_all();
  ASSERT_TRUE(report);
  EXPECT_FALSE(all_intact(*report));
  const std::string text = verify_text(*report);
  EXPECT_TRUE(has(text, "not intact  b  event 3")) << text;
  EXPECT_TRUE(has(text, "NOT INTACT: 1 of 2 attempts")) << text;
  EXPECT_FALSE(has(text, "\x1b")) << "what stands in the file goes to a terminal";
  auto json = contract::parse_json(verify_json(*report), 1U << 20U);
  ASSERT_TRUE(json) << json.error().line();
  EXPECT_EQ((*json)["intact"], false);
  EXPECT_EQ((*json)["attempts"][0]["intact"], true);
  EXPECT_EQ((*json)["attempts"][0]["event"], nullptr);
  EXPECT_EQ((*json)["attempts"][1]["event"], 3);
}

}  // namespace
}  // namespace cofferdam::cli
