#include <unistd.h>

#include "base/io.h"
#include "cli/host.h"
#include "cli/record_json.h"
#include "cli/records.h"
#include "cli/verbs.h"
#include "handoff/store.h"

namespace cofferdam::cli {
namespace {

Result<std::string> patch_of(const FoundAttempt& found, const contract::ChangeFacts& change) {
  if (!change.commit) return std::string();
  const std::string folder = attempt_dir(found.state_dir, found.record.attempt.id);
  TRY(const handoff::AttemptStore store, handoff::AttemptStore::open(folder + "/store.git"));
  return store.diff(change.base, *change.commit);
}

}  // namespace

Result<int> diff_verb(const DiffOptions& options) {
  TRY(const FoundAttempt found, find_attempt(options.id));
  TRY(const contract::ResultRecord result, finished_result(found.record));
  TRY(const std::string patch, patch_of(found, result.change));
  if (options.json) {
    TRY_VOID(print_out(diff_json(result, patch)));
    return 0;
  }
  if (!result.change.commit) {
    (void)write_all(STDERR_FILENO, "attempt " + options.id + " left no change\n").has_value();
    return 0;
  }
  TRY_VOID(print_out(diff_text(patch, ::isatty(STDOUT_FILENO) == 1)));
  return 0;
}

}  // namespace cofferdam::cli
