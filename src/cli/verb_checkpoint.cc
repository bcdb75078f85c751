#include <fmt/core.h>

#include "attempt/control.h"
#include "attempt/lock.h"
#include "cli/host.h"
#include "cli/record_json.h"
#include "cli/records.h"
#include "cli/verbs.h"

namespace cofferdam::cli {

Result<int> checkpoint_verb(const CheckpointOptions& options) {
  TRY(const FoundAttempt found, find_attempt(options.id));
  if (found.record.attempt.finished) {
    return make_error(Code::conflict, fmt::format("attempt \"{}\" is not running: it has ended", options.id),
                      fmt::format("`cofferdam show {}`", options.id));
  }
  TRY(const attempt::CheckpointMade made,
      attempt::request_checkpoint(attempt::folder_of(found.state_dir, options.id), options.reason));
  std::string line = fmt::format("nothing is new in {} since its last commit\n", options.id);
  if (!made.commit.empty()) line = fmt::format("commit {} of {}\n", made.commit, options.id);
  TRY_VOID(print_out(options.json ? checkpoint_json(options.id, made.commit, made.tree) : line));
  return 0;
}

}  // namespace cofferdam::cli
