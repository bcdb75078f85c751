#include "base/clock.h"
#include "cli/records.h"
#include "cli/table.h"
#include "cli/verbs.h"
#include "contract/json.h"

namespace cofferdam::cli {
namespace {

constexpr std::size_t kMaxListed = 1000;

std::string state_name(const ledger::Attempt& attempt) {
  if (attempt.outcome) return contract::outcome_name(*attempt.outcome);
  return attempt.waiting ? "queued" : "running";
}

std::string as_table(const std::vector<ledger::Attempt>& attempts) {
  if (attempts.empty()) return "no attempts yet\n";
  const Timestamp at = now();
  std::vector<std::vector<std::string>> rows;
  rows.reserve(attempts.size());
  for (const ledger::Attempt& attempt : attempts) {
    rows.push_back({attempt.id, contract::phase_name(attempt.phase), attempt.agent, state_name(attempt),
                    short_age(at.ms - attempt.created_at.ms), attempt.repository});
  }
  return table({"ID", "PHASE", "AGENT", "OUTCOME", "AGE", "REPOSITORY"}, rows);
}

std::string as_json(const std::vector<ledger::Attempt>& attempts) {
  contract::Json out = contract::Json::array();
  for (const ledger::Attempt& attempt : attempts) {
    contract::Json row = {
        {"attempt_id", attempt.id},
        {"phase", contract::phase_name(attempt.phase)},
        {"agent", attempt.agent},
        {"repository", attempt.repository},
        {"head", attempt.head},
        {"invocation_sha256", attempt.invocation_sha256},
        {"supervisor_pid", attempt.supervisor_pid},
        {"state", attempt.finished  ? "finished"
                  : attempt.waiting ? "queued"
                                    : "running"},
        {"outcome", nullptr},
        {"created_at", to_rfc3339(attempt.created_at)},
        {"finished_at", nullptr},
    };
    if (attempt.outcome) row["outcome"] = contract::outcome_name(*attempt.outcome);
    if (attempt.finished_at) row["finished_at"] = to_rfc3339(*attempt.finished_at);
    out.push_back(std::move(row));
  }
  return contract::canonical(out) + "\n";
}

}  // namespace

Result<int> list_verb(const ListOptions& options) {
  std::vector<ledger::Attempt> attempts;
  TRY(std::optional<Records> records, open_records());
  if (records) {
    TRY(attempts, records->ledger.list(kMaxListed));
  }
  TRY_VOID(print_out(options.json ? as_json(attempts) : as_table(attempts)));
  return 0;
}

}  // namespace cofferdam::cli
