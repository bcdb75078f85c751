// Opening the ledger's file: its settings and its migrations.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "base/result.h"
#include "ledger/sql.h"

namespace cofferdam::ledger {

// The version that this program writes: the number of migrations.
int current_version();
Result<std::unique_ptr<SQLite::Database>> open_database(const std::string& path,
                                                        std::chrono::milliseconds wait);

}  // namespace cofferdam::ledger
