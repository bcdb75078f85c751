#include <fmt/core.h>
#include <unistd.h>

#include "cli/records.h"
#include "cli/render.h"
#include "cli/table.h"
#include "cli/verbs.h"

namespace cofferdam::cli {
namespace {

std::string running_text(const ledger::Attempt& attempt) {
  return fmt::format("{}  {}  ({}, {})\nrepository {}\nbase       {}\nsince      {}\nprocess    {}\n",
                     attempt.waiting ? "queued " : "running", attempt.id, contract::phase_name(attempt.phase),
                     one_line(attempt.agent), one_line(attempt.repository), attempt.head,
                     to_rfc3339(attempt.created_at), attempt.supervisor_pid);
}

}  // namespace

Result<int> show_verb(const ShowOptions& options) {
  TRY(const FoundAttempt found, find_attempt(options.id));
  if (!found.record.attempt.finished && !options.json) {
    TRY_VOID(print_out(running_text(found.record.attempt)));
    return 0;
  }
  TRY(const contract::ResultRecord result, finished_result(found.record));
  TRY_VOID(print_out(options.json ? *found.record.result + "\n"
                                  : render_result(result, {wants_color(STDOUT_FILENO)})));
  return 0;
}

}  // namespace cofferdam::cli
