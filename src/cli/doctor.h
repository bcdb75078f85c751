// What `cofferdam doctor` says: one row per check, and the one thing to do next.
#pragma once

#include <string>
#include <vector>

#include "cli/host.h"
#include "contract/config.h"
#include "contract/result.h"

namespace cofferdam::cli {

enum class CheckState {
  ok,
  weaker,       // attempts run, with less than the full set
  unavailable,  // attempts cannot run
};
const char* check_state_name(CheckState state);

struct CheckRow {
  std::string name;
  CheckState state = CheckState::unavailable;
  std::string detail;
  std::string remedy = {};  // what to do when it is not ok; may be empty
};

bool is_ready(const std::vector<CheckRow>& rows);
// "ready", or the remedy of the first check that stands in the way. Without a newline.
std::string conclusion(const std::vector<CheckRow>& rows);
std::string doctor_text(const std::vector<CheckRow>& rows);  // the table and the conclusion
std::string doctor_json(const std::vector<CheckRow>& rows);  // one line

// Rows for what a backend found out about its controls on this host.
std::vector<CheckRow> control_rows(const std::vector<contract::ControlFact>& facts);

// The checks that need no box (host_checks.cc). `config_path` as given by --config.
std::vector<CheckRow> host_rows(const Environment& environment,
                                const std::optional<std::string>& config_path);

}  // namespace cofferdam::cli
