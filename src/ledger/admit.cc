// Admission: each attempt id once, ever.
#include <fmt/core.h>

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

void insert_attempt(SQLite::Database& db, const contract::Invocation& invocation, pid_t supervisor_pid,
                    bool waiting) {
  prepare_with(db,
               "INSERT INTO attempts (id, created_at, phase, agent, repository, head, invocation,"
               " invocation_sha256, supervisor_pid, state, waiting, memory_bytes, arrival)"
               " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, 'running', ?10, ?11,"
               " 1 + (SELECT coalesce(max(arrival), 0) FROM attempts))",
               invocation->attempt_id, now(), std::string(contract::phase_name(invocation->phase)),
               invocation->agent.name, invocation->clone.repository, invocation->clone.head,
               invocation.canonical(), invocation.sha256(), static_cast<std::int64_t>(supervisor_pid),
               static_cast<std::int64_t>(waiting), static_cast<std::int64_t>(invocation->limits.memory_bytes))
      .exec();
}

}  // namespace

Status Ledger::admit(const contract::Invocation& invocation, pid_t supervisor_pid) {
  return impl_->write("cannot admit the attempt", [&](SQLite::Database& db) -> Status {
    TRY_VOID(check_id(db, invocation));
    insert_attempt(db, invocation, supervisor_pid, false);
    return {};
  });
}

}  // namespace cofferdam::ledger
