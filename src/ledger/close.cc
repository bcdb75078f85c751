#include "ledger/impl.h"

namespace cofferdam::ledger {

void write_result(SQLite::Database& db, const contract::ResultRecord& result, Timestamp at) {
  prepare_with(db,
               "UPDATE attempts SET state = 'finished', stage = 'finished', waiting = 0, outcome = ?2,"
               " result = ?3, finished_at = ?4, draft = NULL WHERE id = ?1 AND state = 'running'",
               result.attempt_id, std::string(contract::outcome_name(result.outcome)),
               contract::encode_result(result), at)
      .exec();
}

Result<Closed> Ledger::close(contract::ResultRecord result, const std::string& data_json) {
  return impl_->write("cannot record the result", [&](SQLite::Database& db) -> Result<Closed> {
    TRY(const auto state, read_state(db, result.attempt_id));
    if (!state || state->pruned) return unknown_attempt(result.attempt_id);
    TRY(std::vector<contract::Event> events,
        append_in(*impl_, result.attempt_id, {{contract::event_type::finished, data_json}}, std::nullopt));
    result.chain_head = read_head(db, result.attempt_id, state->invocation_sha256).hash;
    write_result(db, result, impl_->now());
    return Closed{std::move(events.front()), std::move(result)};
  });
}

}  // namespace cofferdam::ledger
