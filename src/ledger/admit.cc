// Admission: each attempt id once, ever.
#include <fmt/core.h>

#include <limits>

#include "contract/json.h"
#include "ledger/impl.h"

namespace cofferdam::ledger {
namespace {

Error already_admitted(const contract::Invocation& invocation, const State& state) {
  const std::string& id = invocation->attempt_id;
  const std::string now = state.finished ? state.outcome : state.waiting ? "queued" : "running";
  if (state.invocation_sha256 == invocation.sha256()) {
    const std::string hint =
        state.pruned
            ? "its records were removed since; to run it again choose a new attempt id"
            : fmt::format("`cofferdam show {}` has its state; to run it again choose a new attempt id", id);
    return make_error(
        Code::conflict,
        fmt::format("attempt \"{}\" was admitted before with this same invocation ({})", id, now), hint);
  }
  return make_error(
      Code::conflict,
      fmt::format("attempt id \"{}\" belongs to a different invocation, admitted before ({})", id, now),
      "an attempt id is used once: choose a new one");
}

Status check_id(SQLite::Database& db, const contract::Invocation& invocation) {
  TRY(const auto state, read_state(db, invocation->attempt_id));
  if (state) return already_admitted(invocation, *state);
  return {};
}

void insert_attempt(Store& store, const contract::Invocation& invocation, pid_t supervisor_pid,
                    bool waiting) {
  prepare_with(*store.db,
               "INSERT INTO attempts (id, created_at, phase, agent, repository, head, invocation,"
               " invocation_sha256, supervisor_pid, state, waiting, memory_bytes, arrival)"
               " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, 'running', ?10, ?11,"
               " 1 + (SELECT max(coalesce((SELECT max(arrival) FROM attempts), 0),"
               "                 (SELECT count(*) FROM attempts) + (SELECT count(*) FROM tombstones))))",
               invocation->attempt_id, store.now(), std::string(contract::phase_name(invocation->phase)),
               invocation->agent.name, invocation->clone.repository, invocation->clone.head,
               invocation.canonical(), invocation.sha256(), static_cast<std::int64_t>(supervisor_pid),
               static_cast<std::int64_t>(waiting), static_cast<std::int64_t>(invocation->limits.memory_bytes))
      .exec();
}

// What the attempts that are not finished take of the capacity, and how many wait.
struct Load {
  Capacity taken;
  std::uint64_t waiting = 0;  // of those that came before `arrival`
};

Load read_load(SQLite::Database& db, std::int64_t arrival, const Capacity& capacity) {
  auto query = prepare_with(db,
                            "SELECT coalesce(sum(waiting = 0), 0),"
                            " coalesce(sum(CASE waiting WHEN 0 THEN memory_bytes END), 0),"
                            " coalesce(sum(waiting = 1 AND arrival < ?1), 0)"
                            " FROM attempts WHERE state = 'running'",
                            arrival);
  query.executeStep();
  const auto count = [&](int column) {
    return static_cast<std::uint64_t>(query.getColumn(column).getInt64());
  };
  return {{count(0), count(1) + count(0) * capacity.each_bytes}, count(2)};
}

bool has_room(const Load& load, std::uint64_t memory_bytes, const Capacity& capacity) {
  if (load.waiting > 0) return false;  // nobody overtakes
  if (capacity.attempts > 0 && load.taken.attempts >= capacity.attempts) return false;
  const std::uint64_t wanted = memory_bytes + capacity.each_bytes;
  return capacity.memory_bytes == 0 || load.taken.memory_bytes + wanted <= capacity.memory_bytes;
}

constexpr const char* kCapacityKeys =
    "[capacity] attempts and memory_bytes in the configuration say how much this host takes";

Status check_fits_at_all(const contract::Invocation& invocation, const Capacity& capacity) {
  const std::uint64_t wanted = invocation->limits.memory_bytes + capacity.each_bytes;
  if (capacity.memory_bytes == 0 || wanted <= capacity.memory_bytes) return {};
  return make_error(
      Code::exhausted,
      fmt::format("the attempt's limits.memory_bytes ({}), with {} for boxes of ours, is more than the "
                  "whole capacity ({})",
                  invocation->limits.memory_bytes, capacity.each_bytes, capacity.memory_bytes),
      fmt::format("lower limits.memory_bytes, or raise it: {}", kCapacityKeys));
}

Error full(const contract::Invocation& invocation, const Load& load, const Capacity& capacity) {
  const auto bound = [](std::uint64_t value) { return value == 0 ? "any" : std::to_string(value); };
  return make_error(
      Code::exhausted,
      fmt::format("the capacity is taken: {} of {} attempts run, with {} of {} bytes of memory, and {} wait;"
                  " this one wants {} bytes",
                  load.taken.attempts, bound(capacity.attempts), load.taken.memory_bytes,
                  bound(capacity.memory_bytes), load.waiting,
                  invocation->limits.memory_bytes + capacity.each_bytes),
      fmt::format("try again later, or use when_full \"queue\" to wait; {}", kCapacityKeys));
}

NewEvent queued_event(std::uint64_t position, const Load& load) {
  return {contract::event_type::queued,
          contract::canonical(contract::Json{{"position", position},
                                             {"attempts", load.taken.attempts},
                                             {"memory_bytes", load.taken.memory_bytes}})};
}

NewEvent admitted_event(const std::string& invocation_sha256, const std::string& phase) {
  return {contract::event_type::admitted,
          contract::canonical(contract::Json{{"invocation_sha256", invocation_sha256}, {"phase", phase}})};
}

// A row of the queue.
struct Waiting {
  std::int64_t arrival = 0;
  std::uint64_t memory_bytes = 0;
  std::uint64_t position = 0;  // as last recorded
  std::string invocation;
  std::string invocation_sha256;
  std::string phase;
};

Result<Waiting> read_waiting(SQLite::Database& db, const std::string& id) {
  auto query = prepare_with(
      db,
      "SELECT arrival, memory_bytes, invocation, invocation_sha256, phase, coalesce("
      " (SELECT json_extract(data, '$.position') FROM events WHERE attempt_id = id AND type = 'queued'"
      "  ORDER BY seq DESC LIMIT 1), 0) FROM attempts WHERE id = ?1 AND waiting = 1 AND state = 'running'",
      id);
  if (!query.executeStep()) {
    return make_error(Code::conflict, fmt::format("attempt \"{}\" does not wait in the queue", id));
  }
  return Waiting{query.getColumn(0).getInt64(),
                 static_cast<std::uint64_t>(query.getColumn(1).getInt64()),
                 static_cast<std::uint64_t>(query.getColumn(5).getInt64()),
                 query.getColumn(2).getString(),
                 query.getColumn(3).getString(),
                 query.getColumn(4).getString()};
}

Status check_its_context(SQLite::Database& db, const std::string& canonical) {
  TRY(const contract::Invocation invocation, contract::decode_invocation(canonical));
  if (!invocation->context.has_value()) return {};
  return check_context(db, *invocation->context);
}

Result<Admission> move_up(Store& store, const std::string& id, const Capacity& capacity,
                          const std::optional<std::string>& draft) {
  TRY(const Waiting waiting, read_waiting(*store.db, id));
  const Load load = read_load(*store.db, waiting.arrival, capacity);
  Admission out;
  if (has_room(load, waiting.memory_bytes, capacity)) {
    TRY_VOID(check_its_context(*store.db, waiting.invocation));
    prepare_with(*store.db, "UPDATE attempts SET waiting = 0 WHERE id = ?1", id).exec();
    TRY(out.events, append_in(store, id, {admitted_event(waiting.invocation_sha256, waiting.phase)}, draft));
    out.admitted = true;
    return out;
  }
  out.position = load.waiting + 1;
  if (out.position != waiting.position) {
    TRY(out.events, append_in(store, id, {queued_event(out.position, load)}, std::nullopt));
  }
  return out;
}

}  // namespace

Status Ledger::admit(const contract::Invocation& invocation, pid_t supervisor_pid) {
  return impl_->write("cannot admit the attempt", [&](SQLite::Database& db) -> Status {
    TRY_VOID(check_id(db, invocation));
    if (invocation->context.has_value()) TRY_VOID(check_context(db, *invocation->context));
    insert_attempt(*impl_, invocation, supervisor_pid, false);
    return {};
  });
}

Result<Admission> Ledger::admit(const contract::Invocation& invocation, pid_t supervisor_pid,
                                const Capacity& capacity, const std::optional<std::string>& draft) {
  return impl_->write("cannot admit the attempt", [&](SQLite::Database& db) -> Result<Admission> {
    TRY_VOID(check_id(db, invocation));
    if (invocation->context.has_value()) TRY_VOID(check_context(db, *invocation->context));
    TRY_VOID(check_fits_at_all(invocation, capacity));
    const Load load = read_load(db, std::numeric_limits<std::int64_t>::max(), capacity);
    Admission out;
    out.admitted = has_room(load, invocation->limits.memory_bytes, capacity);
    if (!out.admitted && invocation->when_full == contract::WhenFull::refuse)
      return full(invocation, load, capacity);
    if (!out.admitted) out.position = load.waiting + 1;
    insert_attempt(*impl_, invocation, supervisor_pid, !out.admitted);
    TRY(out.events,
        append_in(*impl_, invocation->attempt_id,
                  {out.admitted ? admitted_event(invocation.sha256(), contract::phase_name(invocation->phase))
                                : queued_event(out.position, load)},
                  draft));
    return out;
  });
}

Result<Admission> Ledger::leave_queue(const std::string& attempt_id, const Capacity& capacity,
                                      const std::optional<std::string>& draft) {
  // Looked at first without the writers' lock: most of the time nothing has changed.
  auto idle = guarded("cannot read the ledger", [&]() -> Result<std::optional<Admission>> {
    SQLite::Transaction transaction(*impl_->db);
    TRY(const Waiting waiting, read_waiting(*impl_->db, attempt_id));
    const Load load = read_load(*impl_->db, waiting.arrival, capacity);
    const bool same = load.waiting + 1 == waiting.position;
    if (!same || has_room(load, waiting.memory_bytes, capacity)) return std::optional<Admission>{};
    return std::optional<Admission>({false, waiting.position, {}});
  });
  if (!idle) return std::move(idle).error();
  if (idle->has_value()) return **std::move(idle);
  return impl_->write("cannot leave the queue",
                      [&](SQLite::Database&) { return move_up(*impl_, attempt_id, capacity, draft); });
}

}  // namespace cofferdam::ledger
