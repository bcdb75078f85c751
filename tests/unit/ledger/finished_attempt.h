// A whole attempt as a supervisor writes it, and the file in the hands of somebody who knows no rules.
#pragma once

#include <SQLiteCpp/SQLiteCpp.h>

#include <string>
#include <vector>

#include "contract/result_digest.h"
#include "ledger_fixture.h"

namespace cofferdam::ledger::testing {

// Five events: admitted, two requests to cancel, settled, finished.
inline contract::ResultRecord finish_attempt(Ledger& ledger, const std::string& id,
                                             const std::string& word = "hello") {
  const auto request = invocation(id, word);
  EXPECT_TRUE(ledger.admit(request, 1));
  EXPECT_TRUE(ledger.append_all(id, {{"admitted", R"({"n":1})"},
                                     {"cancel-requested", R"({"n":2})"},
                                     {"cancel-requested", R"({"n":3})"},
                                     {"settled", R"({"n":4})"}}));
  contract::ResultRecord result = result_for(request, "");
  result.summary = "as it was";
  EXPECT_TRUE(ledger.append(
      id, "finished",
      R"({"outcome":"completed","result_sha256":")" + contract::result_digest(result) + R"("})"));
  auto head = ledger.chain_head(id);
  EXPECT_TRUE(head);
  if (head) result.chain_head = *head;
  Status finished = ledger.finish(result);
  EXPECT_TRUE(finished) << finished.error().line();
  return result;
}

// Without a trigger, a check or a foreign key in the way.
inline void tamper(const std::string& path, const std::string& sql) {
  SQLite::Database db(path, SQLite::OPEN_READWRITE, 10'000);
  std::vector<std::string> triggers;
  {
    SQLite::Statement query(db, "SELECT name FROM sqlite_master WHERE type = 'trigger'");
    while (query.executeStep()) triggers.push_back(query.getColumn(0).getString());
  }
  for (const std::string& name : triggers) db.exec("DROP TRIGGER " + name);
  db.exec("PRAGMA foreign_keys = OFF");
  db.exec("PRAGMA ignore_check_constraints = ON");
  db.exec(sql);
}

}  // namespace cofferdam::ledger::testing
