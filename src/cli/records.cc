#include "cli/records.h"

#include <fmt/core.h>

#include "base/file.h"
#include "cli/host.h"

namespace cofferdam::cli {

Result<std::optional<Records>> open_records() {
  TRY(const std::optional<std::string> state_dir, existing_state_dir(read_environment()));
  if (!state_dir || !exists(ledger::ledger_path(*state_dir))) return std::optional<Records>{};
  TRY(ledger::Ledger ledger, ledger::Ledger::open(ledger::ledger_path(*state_dir)));
  return std::optional<Records>(Records{*state_dir, std::move(ledger)});
}

namespace {

Error unknown_attempt(const std::string& id) {
  return make_error(Code::not_found, fmt::format("there is no attempt \"{}\"", id),
                    "`cofferdam list` shows the attempts");
}

}  // namespace

Result<Records> records_for(const std::string& id) {
  TRY_VOID(check_attempt_id(id));
  TRY(std::optional<Records> records, open_records());
  if (!records) return unknown_attempt(id);
  return *std::move(records);
}

Error missing_attempt(Records& records, const std::string& id) {
  auto tombstone = records.ledger.find_tombstone(id);
  if (!tombstone) return std::move(tombstone).error();
  if (!tombstone->has_value()) return unknown_attempt(id);
  const ledger::Tombstone& left = **tombstone;
  return make_error(
      Code::not_found,
      fmt::format("attempt \"{}\" was pruned on {}: its {} events and its result are gone; it "
                  "was {}",
                  id, to_rfc3339(left.pruned_at), left.events, contract::outcome_name(left.outcome)),
      fmt::format("`cofferdam show {}` has what is left of it", id));
}

Result<FoundAttempt> find_attempt(const std::string& id) {
  TRY(Records records, records_for(id));
  TRY(std::optional<ledger::AttemptRecord> record, records.ledger.find(id));
  if (!record) return missing_attempt(records, id);
  return FoundAttempt{records.state_dir, *std::move(record)};
}

Result<contract::ResultRecord> finished_result(const ledger::AttemptRecord& record) {
  if (!record.result) {
    return make_error(
        Code::conflict,
        fmt::format("attempt \"{}\" has no result yet: it is {} (process {})", record.attempt.id,
                    record.waiting ? "queued" : "running", record.attempt.supervisor_pid),
        fmt::format("wait for it, or `cofferdam cancel {}`", record.attempt.id));
  }
  return contract::decode_result(*record.result);
}

}  // namespace cofferdam::cli
