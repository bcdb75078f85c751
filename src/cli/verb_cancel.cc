#include <fmt/core.h>

#include "attempt/control.h"
#include "attempt/lock.h"
#include "cli/host.h"
#include "cli/record_json.h"
#include "cli/records.h"
#include "cli/verbs.h"

namespace cofferdam::cli {

Result<int> cancel_verb(const CancelOptions& options) {
  TRY(const FoundAttempt found, find_attempt(options.id));
  const ledger::Attempt& attempt = found.record.attempt;
  if (attempt.finished) {
    return make_error(
        Code::conflict,
        fmt::format("attempt \"{}\" is not running: it {}", options.id,
                    attempt.outcome ? fmt::format("ended as {}", contract::outcome_name(*attempt.outcome))
                                    : std::string("has ended")),
        fmt::format("`cofferdam show {}`", options.id));
  }
  TRY_VOID(attempt::request_cancel(attempt::folder_of(found.state_dir, options.id), options.reason));
  TRY_VOID(print_out(options.json ? cancel_json(options.id)
                                  : fmt::format("cancel of {} requested\n", options.id)));
  return 0;
}

}  // namespace cofferdam::cli
