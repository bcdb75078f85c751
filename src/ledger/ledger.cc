#include "ledger/ledger.h"

#include <fmt/core.h>

#include "base/sha256.h"
#include "ledger/schema.h"
#include "ledger/sql.h"

namespace cofferdam::ledger {

using contract::Event;

struct Ledger::Impl {
  std::unique_ptr<SQLite::Database> db;
};

namespace {

std::string link(const std::string& previous, const Event& event) {
  return sha256_hex(previous + "\n" + contract::encode_event(event));
}

Error unknown_attempt(const std::string& id) {
  return make_error(Code::not_found, fmt::format("no attempt \"{}\" in the ledger", id),
                    "`cofferdam list` shows the attempts");
}

// What admission and appending need to know of an attempt.
struct State {
  bool finished = false;
  std::string outcome;
  std::string invocation_sha256;
};

std::optional<State> read_state(SQLite::Database& db, const std::string& id) {
  auto query = prepare_with(
      db, "SELECT state = 'finished', coalesce(outcome, ''), invocation_sha256 FROM attempts WHERE id = ?1",
      id);
  if (!query.executeStep()) return std::nullopt;
  return State{query.getColumn(0).getInt() != 0, query.getColumn(1).getString(),
               query.getColumn(2).getString()};
}

struct Head {
  std::uint64_t seq = 0;
  std::string hash;
};

Head read_head(SQLite::Database& db, const std::string& id, const std::string& invocation_sha256) {
  auto query =
      prepare_with(db, "SELECT seq, hash FROM events WHERE attempt_id = ?1 ORDER BY seq DESC LIMIT 1", id);
  if (!query.executeStep()) return {0, invocation_sha256};
  return {static_cast<std::uint64_t>(query.getColumn(0).getInt64()), query.getColumn(1).getString()};
}

Error already_admitted(const contract::Invocation& invocation, const State& state) {
  const std::string& id = invocation->attempt_id;
  const std::string now = state.finished ? state.outcome : "running";
  if (state.invocation_sha256 == invocation.sha256()) {
    return make_error(
        Code::conflict,
        fmt::format("attempt \"{}\" was admitted before with this same invocation ({})", id, now),
        fmt::format("`cofferdam show {}` has its state; to run it again choose a new attempt id", id));
  }
  return make_error(
      Code::conflict,
      fmt::format("attempt id \"{}\" belongs to a different invocation, admitted before ({})", id, now),
      "an attempt id is used once: choose a new one");
}

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
  if (!out.finished) return out;
  out.outcome = contract::outcome_from_name(row.getColumn(9).getString());
  out.finished_at = Timestamp{row.getColumn(10).getInt64()};
  if (!out.outcome)
    return make_error(Code::protocol, fmt::format("the ledger has an unknown outcome for \"{}\"", out.id));
  return out;
}

Event event_from(SQLite::Statement& row, const std::string& id) {
  Event event;
  event.attempt_id = id;
  event.seq = static_cast<std::uint64_t>(row.getColumn(0).getInt64());
  event.at = Timestamp{row.getColumn(1).getInt64()};
  event.type = row.getColumn(2).getString();
  event.data = row.getColumn(3).getString();
  return event;
}

// The rows of an attempt from its invocation to its result, each against what it must be.
ChainReport check_chain(SQLite::Database& db, const AttemptRecord& record) {
  const std::string& id = record.attempt.id;
  ChainReport report;
  report.head = record.attempt.invocation_sha256;
  if (sha256_hex(record.invocation) != record.attempt.invocation_sha256) {
    report.problem = "the invocation does not have its recorded SHA-256";
    return report;
  }
  auto query =
      prepare_with(db, "SELECT seq, at, type, data, hash FROM events WHERE attempt_id = ?1 ORDER BY seq", id);
  while (query.executeStep()) {
    const Event event = event_from(query, id);
    ++report.events;
    if (event.seq != report.events) {
      report.problem = fmt::format("event {} is missing (the next one is {})", report.events, event.seq);
      return report;
    }
    const std::string expected = link(report.head, event);
    // The chain is over canonical lines, so text that only reads the same must be looked for by itself.
    auto canonical = contract::decode_event(contract::encode_event(event));
    if (query.getColumn(4).getString() != expected || !canonical || canonical->data != event.data) {
      report.problem = fmt::format("event {} ({}) does not continue the chain", event.seq, event.type);
      return report;
    }
    report.head = expected;
  }
  if (record.result) {
    auto result = contract::decode_result(*record.result);
    if (!result) {
      report.problem = "the result cannot be read: " + result.error().what;
    } else if (result->chain_head != report.head) {
      report.problem = fmt::format("the result names another chain head than event {} has", report.events);
    } else if (result->attempt_id != id || result->invocation_sha256 != record.attempt.invocation_sha256) {
      report.problem = "the result is that of another invocation";
    } else if (result->outcome != record.attempt.outcome) {
      report.problem = "the result has another outcome than its row";
    }
  }
  report.intact = report.problem.empty();
  return report;
}

Result<std::optional<AttemptRecord>> read_record(SQLite::Database& db, const std::string& id) {
  auto query = prepare_with(db,
                            "SELECT id, created_at, phase, agent, repository, head, invocation_sha256,"
                            " supervisor_pid, state, outcome, finished_at, invocation, result"
                            " FROM attempts WHERE id = ?1",
                            id);
  if (!query.executeStep()) return std::optional<AttemptRecord>{};
  AttemptRecord record;
  TRY(record.attempt, attempt_from(query));
  record.invocation = query.getColumn(11).getString();
  if (!query.getColumn(12).isNull()) record.result = query.getColumn(12).getString();
  return std::optional<AttemptRecord>(std::move(record));
}

// What `finish` checks in the same transaction that writes the result.
Status check_result(SQLite::Database& db, const contract::ResultRecord& result) {
  auto state = read_state(db, result.attempt_id);
  if (!state) return unknown_attempt(result.attempt_id);
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

Ledger::Ledger(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Ledger::Ledger(Ledger&& other) noexcept = default;
Ledger& Ledger::operator=(Ledger&& other) noexcept = default;
Ledger::~Ledger() = default;

std::string ledger_path(const std::string& state_dir) {
  return state_dir + "/ledger.db";
}

Result<Ledger> Ledger::open(const std::string& path) {
  TRY(auto db, open_database(path));
  auto impl = std::make_unique<Impl>();
  impl->db = std::move(db);
  return Ledger(std::move(impl));
}

Status Ledger::admit(const contract::Invocation& invocation, pid_t supervisor_pid) {
  return guarded("cannot admit the attempt", [&]() -> Status {
    SQLite::Database& db = *impl_->db;
    // IMMEDIATE: of two processes with one id, the second waits here and then finds the first one's row.
    SQLite::Transaction transaction(db, SQLite::TransactionBehavior::IMMEDIATE);
    if (auto state = read_state(db, invocation->attempt_id)) return already_admitted(invocation, *state);
    auto insert =
        prepare_with(db,
                     "INSERT INTO attempts (id, created_at, phase, agent, repository, head, invocation,"
                     " invocation_sha256, supervisor_pid, state)"
                     " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, 'running')",
                     invocation->attempt_id, now(), std::string(contract::phase_name(invocation->phase)),
                     invocation->agent.name, invocation->clone.repository, invocation->clone.head,
                     invocation.canonical(), invocation.sha256(), static_cast<std::int64_t>(supervisor_pid));
    insert.exec();
    transaction.commit();
    return {};
  });
}

Result<Event> Ledger::append(const std::string& attempt_id, const std::string& type,
                             const std::string& data_json) {
  return guarded("cannot record the event", [&]() -> Result<Event> {
    SQLite::Database& db = *impl_->db;
    SQLite::Transaction transaction(db, SQLite::TransactionBehavior::IMMEDIATE);
    auto state = read_state(db, attempt_id);
    if (!state) return unknown_attempt(attempt_id);
    if (state->finished) {
      return make_error(Code::conflict,
                        fmt::format("attempt \"{}\" is finished ({})", attempt_id, state->outcome));
    }
    const Head head = read_head(db, attempt_id, state->invocation_sha256);
    // Through the codec and back: what is stored and returned is canonical, whatever the caller's spacing
    // was, and hashing it again later gives the same bytes.
    TRY(Event event, contract::decode_event(
                         contract::encode_event(Event{attempt_id, head.seq + 1, now(), type, data_json})));
    prepare_with(db,
                 "INSERT INTO events (attempt_id, seq, at, type, data, hash) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
                 event.attempt_id, static_cast<std::int64_t>(event.seq), event.at, event.type, event.data,
                 link(head.hash, event))
        .exec();
    transaction.commit();
    return event;
  });
}

Result<std::string> Ledger::chain_head(const std::string& attempt_id) {
  return guarded("cannot read the ledger", [&]() -> Result<std::string> {
    SQLite::Transaction transaction(*impl_->db);  // both reads see one state
    auto state = read_state(*impl_->db, attempt_id);
    if (!state) return unknown_attempt(attempt_id);
    return read_head(*impl_->db, attempt_id, state->invocation_sha256).hash;
  });
}

Status Ledger::finish(const contract::ResultRecord& result) {
  return guarded("cannot record the result", [&]() -> Status {
    SQLite::Database& db = *impl_->db;
    SQLite::Transaction transaction(db, SQLite::TransactionBehavior::IMMEDIATE);
    TRY_VOID(check_result(db, result));
    prepare_with(db,
                 "UPDATE attempts SET state = 'finished', outcome = ?2, result = ?3, finished_at = ?4"
                 " WHERE id = ?1 AND state = 'running'",
                 result.attempt_id, std::string(contract::outcome_name(result.outcome)),
                 contract::encode_result(result), now())
        .exec();
    transaction.commit();
    return {};
  });
}

Result<std::vector<Attempt>> Ledger::list(std::size_t limit) {
  return guarded("cannot read the ledger", [&]() -> Result<std::vector<Attempt>> {
    auto query = prepare_with(*impl_->db,
                              "SELECT id, created_at, phase, agent, repository, head, invocation_sha256,"
                              " supervisor_pid, state, outcome, finished_at"
                              " FROM attempts ORDER BY created_at DESC, id DESC LIMIT ?1",
                              static_cast<std::int64_t>(limit));
    std::vector<Attempt> attempts;
    while (query.executeStep()) {
      TRY(Attempt attempt, attempt_from(query));
      attempts.push_back(std::move(attempt));
    }
    return attempts;
  });
}

Result<std::optional<AttemptRecord>> Ledger::find(const std::string& attempt_id) {
  return guarded("cannot read the ledger", [&] { return read_record(*impl_->db, attempt_id); });
}

Result<std::vector<Event>> Ledger::events(const std::string& attempt_id) {
  return guarded("cannot read the ledger", [&]() -> Result<std::vector<Event>> {
    SQLite::Transaction transaction(*impl_->db);
    if (!read_state(*impl_->db, attempt_id)) return unknown_attempt(attempt_id);
    auto query = prepare_with(
        *impl_->db, "SELECT seq, at, type, data FROM events WHERE attempt_id = ?1 ORDER BY seq", attempt_id);
    std::vector<Event> events;
    while (query.executeStep()) events.push_back(event_from(query, attempt_id));
    return events;
  });
}

Result<ChainReport> Ledger::verify(const std::string& attempt_id) {
  return guarded("cannot read the ledger", [&]() -> Result<ChainReport> {
    SQLite::Transaction transaction(*impl_->db);
    TRY(std::optional<AttemptRecord> record, read_record(*impl_->db, attempt_id));
    if (!record) return unknown_attempt(attempt_id);
    return check_chain(*impl_->db, *record);
  });
}

}  // namespace cofferdam::ledger
