#include <fmt/core.h>
#include <unistd.h>

#include "attempt/lock.h"
#include "base/file.h"
#include "base/io.h"
#include "cli/host.h"
#include "cli/record_json.h"
#include "cli/records.h"
#include "cli/table.h"
#include "cli/verbs.h"
#include "handoff/store.h"

namespace cofferdam::cli {
namespace {

// The result says that there was work; a store has it until somebody discards it.
Error discarded(const std::string& id, const contract::ChangeFacts& change) {
  return make_error(Code::not_found, fmt::format("the work of attempt \"{}\" was discarded", id),
                    change.ref
                        ? fmt::format("it was handed off as {}: look there", one_line(*change.ref, 200))
                        : std::string("it was never handed off: nobody has it any more"));
}

Result<std::string> patch_of(const FoundAttempt& found, const contract::ChangeFacts& change) {
  if (!change.commit) return std::string();
  const std::string folder = attempt::folder_of(found.state_dir, found.record.attempt.id);
  if (!exists(folder + "/store.git")) return discarded(found.record.attempt.id, change);
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
