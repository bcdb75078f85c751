// What `verify` found, as text and as JSON, and the comparison with a result that was printed earlier.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "contract/result.h"
#include "ledger/ledger.h"

namespace cofferdam::cli {

// A result record on paper: the whole text, or its last line (as `exec` prints it behind its events).
// Code::usage when it is none.
Result<contract::ResultRecord> decode_printed(std::string_view text);

// What does not hold between a result that was printed and what the ledger has of that attempt: its record,
// or its tombstone, or nothing. Empty when everything does.
std::string compare_record(const contract::ResultRecord& printed, const ledger::AttemptRecord& record);
std::string compare_tombstone(const contract::ResultRecord& printed, const ledger::Tombstone& tombstone);

bool all_intact(const ledger::FileReport& report);
// The problems, one line each, and a summary.
std::string verify_text(const ledger::FileReport& report);
std::string verify_json(const ledger::FileReport& report);

}  // namespace cofferdam::cli
