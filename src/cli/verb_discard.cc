#include <fmt/core.h>

#include "cli/attempt_folder.h"
#include "cli/records.h"
#include "cli/retention.h"
#include "cli/verbs.h"

namespace cofferdam::cli {
namespace {

// Only what the ledger knows is ours to remove, and only what has ended.
Status check_discardable(Records& records, const DiscardOptions& options, bool has_store) {
  TRY(const std::optional<ledger::AttemptRecord> record, records.ledger.find(options.id));
  if (!record) {
    TRY(const std::optional<ledger::Tombstone> tombstone, records.ledger.find_tombstone(options.id));
    if (!tombstone) return missing_attempt(records, options.id);
    if (!has_store || options.force) return {};
    return make_error(
        Code::conflict,
        fmt::format("attempt \"{}\" was pruned: nobody knows whether the work in its folder was "
                    "handed off",
                    options.id),
        "--force removes it all the same");
  }
  if (!record->result) {
    return make_error(Code::conflict,
                      fmt::format("attempt \"{}\" has no result yet: it is running (process {})", options.id,
                                  record->attempt.supervisor_pid),
                      fmt::format("wait for it, or `cofferdam cancel {}`", options.id));
  }
  TRY(const std::string lost, unpublished_work(records.ledger, *record, has_store));
  if (lost.empty() || options.force) return {};
  return make_error(Code::conflict, fmt::format("attempt \"{}\" is not discarded: {}", options.id, lost),
                    fmt::format("see `cofferdam diff {}`; --force removes it all the same", options.id));
}

}  // namespace

Result<int> discard_verb(const DiscardOptions& options) {
  TRY(Records records, records_for(options.id));
  TRY_VOID(check_discardable(records, options, false));  // whether it may be touched, before it is looked at
  TRY(std::optional<AttemptFolder> folder, AttemptFolder::open(records.state_dir, options.id));
  std::uint64_t bytes = 0;
  if (folder) {
    TRY_VOID(check_discardable(records, options, folder->has_store()));
    bytes = folder->bytes();
    TRY_VOID(folder->remove());
  }
  TRY_VOID(remove_folder_leftovers(records.state_dir));
  TRY_VOID(print_out(options.json ? discard_json(options.id, folder.has_value(), bytes)
                                  : discard_text(options.id, folder.has_value(), bytes)));
  return 0;
}

}  // namespace cofferdam::cli
