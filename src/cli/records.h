// The stored attempts, as the reading verbs see them.
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "contract/result.h"
#include "ledger/ledger.h"

namespace cofferdam::cli {

struct Records {
  std::string state_dir;
  ledger::Ledger ledger;
};

// nullopt when nothing was ever run here.
Result<std::optional<Records>> open_records();

// For verbs about one attempt that read more of it. Code::usage for what is no id, Code::not_found when
// nothing was ever run here; that the attempt is in the ledger is not checked.
Result<Records> records_for(const std::string& id);
// Code::not_found: there is no such attempt, or it was pruned, and what its tombstone has.
Error missing_attempt(Records& records, const std::string& id);

struct FoundAttempt {
  std::string state_dir;
  ledger::AttemptRecord record;
};
// Code::usage for what is no id, Code::not_found for an unknown one.
Result<FoundAttempt> find_attempt(const std::string& id);
// The decoded result; Code::conflict while the attempt runs.
Result<contract::ResultRecord> finished_result(const ledger::AttemptRecord& record);

}  // namespace cofferdam::cli
