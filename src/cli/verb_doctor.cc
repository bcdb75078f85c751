#include "cli/doctor.h"
#include "cli/exit_code.h"
#include "cli/verbs.h"

namespace cofferdam::cli {

Result<int> doctor_verb(const DoctorOptions& options) {
  // A backend that can judge its controls on this host adds its control_rows() here.
  const std::vector<CheckRow> rows = host_rows(read_environment(), options.config);
  TRY_VOID(print_out(options.json ? doctor_json(rows) : doctor_text(rows)));
  return is_ready(rows) ? 0 : kExitRefused;
}

}  // namespace cofferdam::cli
