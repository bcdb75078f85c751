// What the ledger's tests share: a folder of their own, invocations, results.
#pragma once

#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "base/file.h"
#include "ledger/ledger.h"

namespace cofferdam::ledger::testing {

inline contract::Invocation invocation(const std::string& id, const std::string& word = "hello") {
  contract::InvocationFields fields;
  fields.attempt_id = id;
  fields.phase = contract::Phase::implementation;
  fields.agent = {"command", {"/bin/echo", word}};
  fields.clone.repository = "/srv/repository";
  fields.clone.head = std::string(40, 'a');
  auto built = contract::build_invocation(fields);
  EXPECT_TRUE(built) << built.error().line();
  return *std::move(built);
}

inline contract::ResultRecord result_for(const contract::Invocation& invocation,
                                         const std::string& chain_head) {
  contract::ResultRecord result;
  result.attempt_id = invocation->attempt_id;
  result.invocation_sha256 = invocation.sha256();
  result.phase = invocation->phase;
  result.outcome = contract::Outcome::completed;
  result.cause = {"exit", "exit code 0", now()};
  result.change.base = invocation->clone.head;
  result.publication.state = "none";
  result.agent.name = invocation->agent.name;
  result.created_at = now();
  result.chain_head = chain_head;
  return result;
}

class LedgerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto made = TempDir::create(::testing::TempDir(), "ledger.");
    ASSERT_TRUE(made) << made.error().line();
    folder_.emplace(*std::move(made));
    path_ = ledger_path(folder_->path());
  }
  Ledger open() {
    auto ledger = Ledger::open(path_);
    EXPECT_TRUE(ledger) << ledger.error().line();
    return *std::move(ledger);
  }

  std::optional<TempDir> folder_;
  std::string path_;
};

}  // namespace cofferdam::ledger::testing
