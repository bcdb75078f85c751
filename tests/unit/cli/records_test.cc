#include "cli/records.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "base/file.h"

namespace cofferdam::cli {
namespace {

class RecordsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto made = TempDir::create(::testing::TempDir(), "records.");
    ASSERT_TRUE(made) << made.error().line();
    folder_.emplace(*std::move(made));
    ASSERT_EQ(::setenv("COFFERDAM_STATE_DIR", folder_->path().c_str(), 1), 0);
  }
  void TearDown() override { ::unsetenv("COFFERDAM_STATE_DIR"); }

  void admit(const std::string& id) {
    auto ledger = ledger::Ledger::open(ledger::ledger_path(folder_->path()));
    ASSERT_TRUE(ledger) << ledger.error().line();
    contract::InvocationFields fields;
    fields.attempt_id = id;
    fields.agent = {"command", {"true"}};
    fields.clone.repository = "/r";
    fields.clone.head = std::string(40, 'a');
    auto invocation = contract::build_invocation(fields);
    ASSERT_TRUE(invocation) << invocation.error().line();
    ASSERT_TRUE(ledger->admit(*invocation, 4711));
  }

  std::optional<TempDir> folder_;
};

TEST_F(RecordsTest, ReadingMakesNothing) {
  auto records = open_records();
  ASSERT_TRUE(records) << records.error().line();
  EXPECT_FALSE(records->has_value());
  EXPECT_TRUE(list_dir(folder_->path())->empty());
  EXPECT_EQ(find_attempt("a-1").error().code, Code::not_found);
}

TEST_F(RecordsTest, RunningAttemptIsFoundWithoutAResult) {
  admit("a-1");
  auto found = find_attempt("a-1");
  ASSERT_TRUE(found) << found.error().line();
  EXPECT_EQ(found->state_dir, *real_path(folder_->path()));
  auto result = finished_result(found->record);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, Code::conflict);
  EXPECT_NE(result.error().line().find("4711"), std::string::npos);
  EXPECT_EQ(find_attempt("a-2").error().code, Code::not_found);
  EXPECT_EQ(find_attempt("../a-1").error().code, Code::usage);
}

TEST_F(RecordsTest, PrunedAttemptIsSaidToBePruned) {
  admit("a-1");
  auto ledger = ledger::Ledger::open(ledger::ledger_path(folder_->path()));
  ASSERT_TRUE(ledger);
  contract::ResultRecord result;
  result.attempt_id = "a-1";
  auto head = ledger->chain_head("a-1");
  ASSERT_TRUE(head);
  result.invocation_sha256 = result.chain_head = *head;
  result.cause = {"exit", "", now()};
  result.agent.name = "command";
  result.change.base = std::string(40, 'a');
  result.publication.state = "none";
  result.created_at = now();
  Status finished = ledger->finish(result);
  ASSERT_TRUE(finished) << finished.error().line();
  auto pruned = ledger->prune("a-1");
  ASSERT_TRUE(pruned) << pruned.error().line();
  auto found = find_attempt("a-1");
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code, Code::not_found);
  EXPECT_NE(found.error().line().find("was pruned on 20"), std::string::npos) << found.error().line();
  EXPECT_NE(found.error().line().find("setup-failed"), std::string::npos) << found.error().line();
}

}  // namespace
}  // namespace cofferdam::cli
