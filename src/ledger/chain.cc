// Events and their hash chain: appending.
#include <fmt/core.h>

#include "base/sha256.h"
#include "ledger/impl.h"

namespace cofferdam::ledger {

using contract::Event;
using contract::Stage;

namespace {

Result<Stage> stage_after(const std::string& id, Stage stage, const std::string& type) {
  if (auto next = contract::next_stage(stage, type)) return *next;
  return make_error(Code::conflict,
                    fmt::format("attempt \"{}\" is at \"{}\": an event \"{}\" cannot come there", id,
                                contract::stage_name(stage), type));
}

Result<Event> insert_event(Store& store, const std::string& id, const NewEvent& wanted, Head* head) {
  // Through the codec and back: what is stored and returned is canonical, whatever the caller's spacing was,
  // and hashing it again later gives the same bytes.
  TRY(Event event, contract::decode_event(contract::encode_event(
                       Event{id, head->seq + 1, store.now(), wanted.type, wanted.data})));
  *head = {event.seq, chain_link(head->hash, event)};
  prepare_with(
      *store.db, "INSERT INTO events (attempt_id, seq, at, type, data, hash) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
      event.attempt_id, static_cast<std::int64_t>(event.seq), event.at, event.type, event.data, head->hash)
      .exec();
  return event;
}

}  // namespace

std::string chain_link(const std::string& previous, const Event& event) {
  return sha256_hex(previous + "\n" + contract::encode_event(event));
}

Head read_head(SQLite::Database& db, const std::string& id, const std::string& invocation_sha256) {
  auto query =
      prepare_with(db, "SELECT seq, hash FROM events WHERE attempt_id = ?1 ORDER BY seq DESC LIMIT 1", id);
  if (!query.executeStep()) return {0, invocation_sha256};
  return {static_cast<std::uint64_t>(query.getColumn(0).getInt64()), query.getColumn(1).getString()};
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

Result<std::vector<Event>> append_in(Store& store, const std::string& id, const std::vector<NewEvent>& events,
                                     const std::optional<std::string>& draft) {
  SQLite::Database& db = *store.db;
  TRY(const auto state, read_state(db, id));
  if (!state || state->pruned) return unknown_attempt(id);
  if (state->finished) {
    return make_error(Code::conflict, fmt::format("attempt \"{}\" is finished ({})", id, state->outcome));
  }
  Head head = read_head(db, id, state->invocation_sha256);
  Stage stage = state->stage;
  std::vector<Event> out;
  for (const NewEvent& wanted : events) {
    TRY(Event event, insert_event(store, id, wanted, &head));
    TRY(stage, stage_after(id, stage, event.type));
    out.push_back(std::move(event));
  }
  if (stage != state->stage || draft.has_value()) {
    prepare_with(db, "UPDATE attempts SET stage = ?2, draft = coalesce(?3, draft) WHERE id = ?1", id,
                 std::string(contract::stage_name(stage)), draft)
        .exec();
  }
  return out;
}

}  // namespace cofferdam::ledger
