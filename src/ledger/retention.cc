// What is left of an attempt when its record goes: the tombstone, in the same transaction.
#include <fmt/core.h>

#include "ledger/impl.h"

namespace cofferdam::ledger {

namespace {

Result<Tombstone> tombstone_from(SQLite::Statement& row) {
  Tombstone out;
  out.attempt_id = row.getColumn(0).getString();
  out.invocation_sha256 = row.getColumn(1).getString();
  auto outcome = contract::outcome_from_name(row.getColumn(2).getString());
  if (!outcome) {
    return make_error(Code::protocol,
                      fmt::format("the tombstone of \"{}\" has an unknown outcome", out.attempt_id));
  }
  out.outcome = *outcome;
  out.chain_head = row.getColumn(3).getString();
  out.events = static_cast<std::uint64_t>(row.getColumn(4).getInt64());
  out.created_at = Timestamp{row.getColumn(5).getInt64()};
  out.finished_at = Timestamp{row.getColumn(6).getInt64()};
  out.pruned_at = Timestamp{row.getColumn(7).getInt64()};
  return out;
}

// Pruning must not hide that a record was tampered with.
Result<ChainReport> check_prunable(SQLite::Database& db, const AttemptRecord& record) {
  const std::string& id = record.attempt.id;
  if (!record.attempt.finished || !record.attempt.outcome || !record.attempt.finished_at) {
    return make_error(Code::conflict, fmt::format("attempt \"{}\" has no result yet", id),
                      "only finished attempts are pruned");
  }
  ChainReport report = check_chain(db, record);
  if (report.intact) return report;
  return make_error(Code::protocol, fmt::format("the record of \"{}\" does not hold: {}", id, report.problem),
                    fmt::format("`cofferdam verify {}`; it is kept as it is", id));
}

}  // namespace

Result<std::optional<Tombstone>> read_tombstone(SQLite::Database& db, const std::string& id) {
  auto query = prepare_with(db,
                            "SELECT attempt_id, invocation_sha256, outcome, chain_head, events, created_at,"
                            " finished_at, pruned_at FROM tombstones WHERE attempt_id = ?1",
                            id);
  if (!query.executeStep()) return std::optional<Tombstone>{};
  TRY(Tombstone tombstone, tombstone_from(query));
  return std::optional<Tombstone>(std::move(tombstone));
}

Result<std::optional<Tombstone>> Ledger::find_tombstone(const std::string& attempt_id) {
  return guarded("cannot read the ledger", [&] { return read_tombstone(*impl_->db, attempt_id); });
}

Result<Tombstone> Ledger::prune(const std::string& attempt_id) {
  return impl_->write("cannot prune the attempt", [&](SQLite::Database& db) -> Result<Tombstone> {
    TRY(const std::optional<AttemptRecord> record, read_record(db, attempt_id));
    if (!record) return unknown_attempt(attempt_id);
    TRY(const ChainReport report, check_prunable(db, *record));
    prepare_with(db,
                 "INSERT INTO tombstones (attempt_id, invocation_sha256, outcome, chain_head, events,"
                 " created_at, finished_at, pruned_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
                 attempt_id, record->attempt.invocation_sha256,
                 std::string(contract::outcome_name(*record->attempt.outcome)), report.head,
                 static_cast<std::int64_t>(report.events), record->attempt.created_at,
                 *record->attempt.finished_at, impl_->now())
        .exec();
    // A retry that was broken off must not keep the context for an attempt that is no more.
    prepare_with(db, "UPDATE publications SET state = 'failed' WHERE attempt_id = ?1 AND state = 'claimed'",
                 attempt_id)
        .exec();
    prepare_with(db, "DELETE FROM events WHERE attempt_id = ?1", attempt_id).exec();
    prepare_with(db, "DELETE FROM attempts WHERE id = ?1", attempt_id).exec();
    TRY(const std::optional<Tombstone> left, read_tombstone(db, attempt_id));
    if (!left) return make_error(Code::internal, "the tombstone was not written");
    return *left;
  });
}

}  // namespace cofferdam::ledger
