#include <unistd.h>

#include "base/io.h"
#include "base/text.h"
#include "cli/host.h"
#include "cli/records.h"
#include "cli/verbs.h"
#include "handoff/store.h"

namespace cofferdam::cli {

Result<int> diff_verb(const DiffOptions& options) {
  TRY(const FoundAttempt found, find_attempt(options.id));
  TRY(const contract::ResultRecord result, finished_result(found.record));
  if (!result.change.commit) {
    (void)write_all(STDERR_FILENO, "attempt " + options.id + " left no change\n").has_value();
    return 0;
  }
  TRY(const handoff::AttemptStore store,
      handoff::AttemptStore::open(attempt_dir(found.state_dir, options.id) + "/store.git"));
  TRY(std::string patch, store.diff(result.change.base, *result.change.commit));
  // A patch must keep its bytes, a terminal must not be given them: U+FFFD is at most three bytes for one.
  if (::isatty(STDOUT_FILENO) == 1) patch = printable(patch, patch.size() * 3);
  TRY_VOID(print_out(patch));
  return 0;
}

}  // namespace cofferdam::cli
