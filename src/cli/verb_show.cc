#include <fmt/core.h>
#include <unistd.h>

#include "cli/records.h"
#include "cli/render.h"
#include "cli/table.h"
#include "cli/tombstone_text.h"
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
  TRY(Records records, records_for(options.id));
  TRY(std::optional<ledger::AttemptRecord> record, records.ledger.find(options.id));
  if (!record) {
    TRY(const std::optional<ledger::Tombstone> left, records.ledger.find_tombstone(options.id));
    if (!left) return missing_attempt(records, options.id);
    TRY_VOID(print_out(options.json ? tombstone_json(*left) : tombstone_text(*left)));
    return 0;
  }
  if (!record->attempt.finished && !options.json) {
    TRY_VOID(print_out(running_text(record->attempt)));
    return 0;
  }
  TRY(const contract::ResultRecord result, finished_result(*record));
  TRY_VOID(
      print_out(options.json ? *record->result + "\n" : render_result(result, {wants_color(STDOUT_FILENO)})));
  if (options.json || result.change.ref.has_value()) return 0;
  // The result stays as it was written; a recovery may have published the change since.
  TRY(const auto later, records.ledger.publication(options.id));
  if (later && later->state == "published") {
    TRY_VOID(print_out(
        fmt::format("published  {} (later, {})\n", one_line(later->ref), to_rfc3339(later->changed_at))));
  }
  return 0;
}

}  // namespace cofferdam::cli
