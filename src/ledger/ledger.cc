#include "ledger/ledger.h"

#include <fmt/core.h>

#include "ledger/impl.h"
#include "ledger/schema.h"

namespace cofferdam::ledger {

using contract::Event;

namespace {

Result<Attempt> attempt_from(SQLite::Statement& row) {
  Attempt out;
  out.id = row.getColumn(0).getString();
  out.created_at = Timestamp{row.getColumn(1).getInt64()};
  auto phase = contract::phase_from_name(row.getColumn(2).getString());
  if (!phase)
    return make_error(Code::protocol, fmt::format("the ledger has an unknown phase for \"{}\"", out.id));
  out.phase = *phase;
  out.agent = row.getColumn(3).getString();
  out.repository = row.getColumn(4).getString();
  out.head = row.getColumn(5).getString();
  out.invocation_sha256 = row.getColumn(6).getString();
  out.supervisor_pid = row.getColumn(7).getInt();
  out.finished = row.getColumn(8).getString() == "finished";
  out.waiting = row.getColumn(11).getInt() != 0;
  if (!out.finished) return out;
  out.outcome = contract::outcome_from_name(row.getColumn(9).getString());
  out.finished_at = Timestamp{row.getColumn(10).getInt64()};
  if (!out.outcome)
    return make_error(Code::protocol, fmt::format("the ledger has an unknown outcome for \"{}\"", out.id));
  return out;
}

Result<contract::Stage> stage_from(const std::string& id, const std::string& name) {
  if (auto stage = contract::stage_from_name(name)) return *stage;
  return make_error(Code::protocol, fmt::format("the ledger has an unknown stage for \"{}\"", id));
}

// What `finish` checks in the same transaction that writes the result.
Status check_result(SQLite::Database& db, const contract::ResultRecord& result) {
  TRY(const auto state, read_state(db, result.attempt_id));
  if (!state || state->pruned) return unknown_attempt(result.attempt_id);
  if (state->finished) {
    return make_error(Code::conflict, fmt::format("attempt \"{}\" has its result already ({})",
                                                  result.attempt_id, state->outcome));
  }
  if (result.invocation_sha256 != state->invocation_sha256) {
    return make_error(Code::internal,
                      fmt::format("the result of \"{}\" names another invocation", result.attempt_id));
  }
  const Head head = read_head(db, result.attempt_id, state->invocation_sha256);
  if (result.chain_head != head.hash) {
    return make_error(Code::conflict,
                      fmt::format("the result of \"{}\" names chain head {}, but the ledger is at {}",
                                  result.attempt_id, result.chain_head, head.hash));
  }
  return {};
}

}  // namespace

Error unknown_attempt(const std::string& id) {
  return make_error(Code::not_found, fmt::format("no attempt \"{}\" in the ledger", id),
                    "`cofferdam list` shows the attempts");
}

Result<std::optional<State>> read_state(SQLite::Database& db, const std::string& id) {
  auto query = prepare_with(db,
                            "SELECT state = 'finished', coalesce(outcome, ''), invocation_sha256, stage,"
                            " waiting, 0 FROM attempts WHERE id = ?1"
                            " UNION ALL SELECT 1, outcome, invocation_sha256, 'finished', 0, 1"
                            " FROM tombstones WHERE attempt_id = ?1 LIMIT 1",
                            id);
  if (!query.executeStep()) return std::optional<State>{};
  State state;
  state.finished = query.getColumn(0).getInt() != 0;
  state.outcome = query.getColumn(1).getString();
  state.invocation_sha256 = query.getColumn(2).getString();
  TRY(state.stage, stage_from(id, query.getColumn(3).getString()));
  state.waiting = query.getColumn(4).getInt() != 0;
  state.pruned = query.getColumn(5).getInt() != 0;
  return std::optional<State>(std::move(state));
}

Result<std::optional<AttemptRecord>> read_record(SQLite::Database& db, const std::string& id) {
  auto query =
      prepare_with(db,
                   "SELECT id, created_at, phase, agent, repository, head, invocation_sha256,"
                   " supervisor_pid, state, outcome, finished_at, waiting, invocation, result, draft,"
                   " stage FROM attempts WHERE id = ?1",
                   id);
  if (!query.executeStep()) return std::optional<AttemptRecord>{};
  AttemptRecord record;
  TRY(record.attempt, attempt_from(query));
  record.invocation = query.getColumn(12).getString();
  if (!query.getColumn(13).isNull()) record.result = query.getColumn(13).getString();
  if (!query.getColumn(14).isNull()) record.draft = query.getColumn(14).getString();
  TRY(record.stage, stage_from(id, query.getColumn(15).getString()));
  record.waiting = record.attempt.waiting;
  return std::optional<AttemptRecord>(std::move(record));
}

Ledger::Ledger(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Ledger::Ledger(Ledger&& other) noexcept = default;
Ledger& Ledger::operator=(Ledger&& other) noexcept = default;
Ledger::~Ledger() = default;

std::string ledger_path(const std::string& state_dir) {
  return state_dir + "/ledger.db";
}

Result<Ledger> Ledger::open(const std::string& path, Options options) {
  TRY(auto db, open_database(path, options.write_wait));
  return Ledger(
      std::unique_ptr<Impl>(new Impl{{std::move(db), FileLock(path + ".write-lock"), std::move(options)}}));
}

Result<Event> Ledger::append(const std::string& attempt_id, const std::string& type,
                             const std::string& data_json, const std::optional<std::string>& draft) {
  TRY(std::vector<Event> events, append_all(attempt_id, {{type, data_json}}, draft));
  return std::move(events.front());
}

Result<std::vector<Event>> Ledger::append_all(const std::string& attempt_id,
                                              const std::vector<NewEvent>& events,
                                              const std::optional<std::string>& draft) {
  return impl_->write("cannot record the event",
                      [&](SQLite::Database&) { return append_in(*impl_, attempt_id, events, draft); });
}

Result<std::string> Ledger::chain_head(const std::string& attempt_id) {
  return guarded("cannot read the ledger", [&]() -> Result<std::string> {
    SQLite::Transaction transaction(*impl_->db);  // both reads see one state
    TRY(const auto state, read_state(*impl_->db, attempt_id));
    if (!state || state->pruned) return unknown_attempt(attempt_id);
    return read_head(*impl_->db, attempt_id, state->invocation_sha256).hash;
  });
}

Status Ledger::finish(const contract::ResultRecord& result) {
  return impl_->write("cannot record the result", [&](SQLite::Database& db) -> Status {
    TRY_VOID(check_result(db, result));
    prepare_with(db,
                 "UPDATE attempts SET state = 'finished', stage = 'finished', waiting = 0, outcome = ?2,"
                 " result = ?3, finished_at = ?4, draft = NULL WHERE id = ?1 AND state = 'running'",
                 result.attempt_id, std::string(contract::outcome_name(result.outcome)),
                 contract::encode_result(result), impl_->now())
        .exec();
    return {};
  });
}

Result<std::vector<Attempt>> Ledger::list(std::size_t limit) {
  return guarded("cannot read the ledger", [&]() -> Result<std::vector<Attempt>> {
    auto query = prepare_with(*impl_->db,
                              "SELECT id, created_at, phase, agent, repository, head, invocation_sha256,"
                              " supervisor_pid, state, outcome, finished_at, waiting"
                              " FROM attempts ORDER BY arrival DESC LIMIT ?1",
                              static_cast<std::int64_t>(limit));
    std::vector<Attempt> attempts;
    while (query.executeStep()) {
      TRY(Attempt attempt, attempt_from(query));
      attempts.push_back(std::move(attempt));
    }
    return attempts;
  });
}

Result<std::vector<std::string>> Ledger::unfinished() {
  return guarded("cannot read the ledger", [&]() -> Result<std::vector<std::string>> {
    auto query = prepare(*impl_->db, "SELECT id FROM attempts WHERE state = 'running' ORDER BY arrival");
    std::vector<std::string> ids;
    while (query.executeStep()) ids.push_back(query.getColumn(0).getString());
    return ids;
  });
}

Result<std::optional<AttemptRecord>> Ledger::find(const std::string& attempt_id) {
  return guarded("cannot read the ledger", [&] { return read_record(*impl_->db, attempt_id); });
}

Result<std::vector<Event>> Ledger::events(const std::string& attempt_id) {
  return guarded("cannot read the ledger", [&]() -> Result<std::vector<Event>> {
    SQLite::Transaction transaction(*impl_->db);
    TRY(const auto state, read_state(*impl_->db, attempt_id));
    if (!state || state->pruned) return unknown_attempt(attempt_id);
    auto query = prepare_with(
        *impl_->db, "SELECT seq, at, type, data FROM events WHERE attempt_id = ?1 ORDER BY seq", attempt_id);
    std::vector<Event> events;
    while (query.executeStep()) events.push_back(event_from(query, attempt_id));
    return events;
  });
}

}  // namespace cofferdam::ledger
