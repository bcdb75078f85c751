// Events and their hash chain: appending, and checking what stands there.
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

// The result against its row and the chain's end.
std::string result_problem(const AttemptRecord& record, const ChainReport& report) {
  auto result = contract::decode_result(*record.result);
  if (!result) return "the result cannot be read: " + result.error().what;
  if (result->chain_head != report.head)
    return fmt::format("the result names another chain head than event {} has", report.events);
  if (result->attempt_id != record.attempt.id ||
      result->invocation_sha256 != record.attempt.invocation_sha256)
    return "the result is that of another invocation";
  if (result->outcome != record.attempt.outcome) return "the result has another outcome than its row";
  return {};
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

// The rows of an attempt from its invocation to its result, each against what it must be.
ChainReport check_chain(SQLite::Database& db, const AttemptRecord& record) {
  const std::string& id = record.attempt.id;
  ChainReport report;
  Stage stage = Stage::none;
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
    const std::string expected = chain_link(report.head, event);
    // The chain is over canonical lines, so text that only reads the same must be looked for by itself.
    auto canonical = contract::decode_event(contract::encode_event(event));
    if (query.getColumn(4).getString() != expected || !canonical || canonical->data != event.data) {
      report.problem = fmt::format("event {} ({}) does not continue the chain", event.seq, event.type);
      return report;
    }
    report.head = expected;
    if (auto reached = contract::stage_from_name(event.type)) stage = *reached;
  }
  if (!record.result && stage != record.stage) {
    report.problem = fmt::format("the stage is \"{}\", but the events lead to \"{}\"",
                                 contract::stage_name(record.stage), contract::stage_name(stage));
  }
  if (record.result) report.problem = result_problem(record, report);
  report.intact = report.problem.empty();
  return report;
}

}  // namespace cofferdam::ledger
