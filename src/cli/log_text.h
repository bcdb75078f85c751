// What `log` prints for people: one line for each event, and what became of the attempt.
#pragma once

#include <string>

#include "contract/event.h"
#include "ledger/ledger.h"

namespace cofferdam::cli {

// "2026-11-30T09:04:17.804Z  type  facts". Every event has its line; what an agent or a vendor wrote in it is
// printable and cut.
std::string log_line(const contract::Event& event);
// "completed  <id>", behind the last event.
std::string outcome_line(const ledger::Attempt& attempt);

}  // namespace cofferdam::cli
