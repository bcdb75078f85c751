// What `cofferdam doctor` says: one row per check, and the one thing to do next.
#pragma once

#include <string>
#include <vector>

#include "attempt/host_storage.h"
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

// One row per control of a box that was set up on this host; one row "box" when none could be.
std::vector<CheckRow> control_rows(const std::vector<contract::ControlFact>& facts);
std::vector<CheckRow> box_rows(const Result<std::vector<contract::ControlFact>>& probed);

// The checks that need no box (host_checks.cc). `config` is the defaults when it could not be loaded.
CheckRow config_row(const Result<contract::Config>& loaded, const std::optional<std::string>& path);
// What a box is made with: without one of these there is none.
std::vector<CheckRow> needed_rows(const contract::Config& config);
// What an attempt finds here beyond its box.
std::vector<CheckRow> attempt_rows(const Environment& environment, const contract::Config& config,
                                   const Result<attempt::HostStorage>& storage);

}  // namespace cofferdam::cli
