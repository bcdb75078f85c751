// Whether what stands in the file is what was written: every row of an attempt against the chain, and the
// chain against the result.
//
// Of an attempt's row the hash chain covers the invocation (and the columns that repeat it), the events, the
// outcome and the result. It does not cover created_at, finished_at, the supervisor's process and the queue's
// columns: nobody outside the ledger has a copy of them either.
#include <fmt/core.h>

#include <algorithm>

#include "base/sha256.h"
#include "base/text.h"
#include "contract/json.h"
#include "contract/result_digest.h"
#include "ledger/impl.h"

namespace cofferdam::ledger {

using contract::Event;
using contract::Json;

namespace {

constexpr std::size_t kMaxStored = 256U << 20U;

std::string text_at(const Json& json, const char* pointer) {
  const Json::json_pointer at(pointer);
  return json.contains(at) && json.at(at).is_string() ? json.at(at).get<std::string>() : std::string();
}

// The row's own columns are copies from the invocation; queries and people read them.
std::string invocation_problem(const AttemptRecord& record) {
  const Attempt& row = record.attempt;
  if (sha256_hex(record.invocation) != row.invocation_sha256)
    return "the invocation does not have its recorded SHA-256";
  auto invocation = contract::parse_json(record.invocation, kMaxStored);
  if (!invocation) return "the invocation cannot be read: " + invocation.error().what;
  const std::pair<const char*, std::string> copies[] = {{"/attempt_id", row.id},
                                                        {"/phase", contract::phase_name(row.phase)},
                                                        {"/agent/name", row.agent},
                                                        {"/clone/repository", row.repository},
                                                        {"/clone/head", row.head}};
  for (const auto& [pointer, value] : copies) {
    if (text_at(*invocation, pointer) != value)
      return fmt::format("the row does not repeat its invocation ({})", pointer + 1);
  }
  return {};
}

// Only the last event, and only since results have a digest.
std::string finished_problem(const Event& last, const contract::ResultRecord& result,
                             const std::string& stored) {
  auto data = contract::parse_json(last.data, kMaxStored);
  if (last.type != contract::event_type::finished || !data || !data->is_object()) return {};
  const std::string outcome = text_at(*data, "/outcome");
  if (!outcome.empty() && outcome != contract::outcome_name(result.outcome))
    return fmt::format("the result has another outcome than event {} (finished)", last.seq);
  const std::string digest = text_at(*data, "/result_sha256");
  if (digest.empty()) return {};
  if (digest != contract::result_digest(result) || stored != contract::encode_result(result))
    return fmt::format("the result does not have the SHA-256 that event {} (finished) names", last.seq);
  return {};
}

// The result against its row and the chain's end.
std::string result_problem(const AttemptRecord& record, const ChainReport& report, const Event& last) {
  auto result = contract::decode_result(*record.result);
  if (!result) return "the result cannot be read: " + result.error().what;
  if (result->chain_head != report.head)
    return fmt::format("the result names another chain head than event {} has", report.events);
  if (result->attempt_id != record.attempt.id ||
      result->invocation_sha256 != record.attempt.invocation_sha256 ||
      result->phase != record.attempt.phase || result->agent.name != record.attempt.agent)
    return "the result is that of another invocation";
  if (result->outcome != record.attempt.outcome) return "the result has another outcome than its row";
  return finished_problem(last, *result, *record.result);
}

// The chain is over canonical lines, so text that only reads the same must be looked for by itself.
bool is_canonical(const Event& event) {
  auto read = contract::decode_event(contract::encode_event(event));
  return read && read->seq == event.seq && read->at == event.at && read->type == event.type &&
         read->data == event.data;
}

ChainReport not_readable(const std::string& id, const std::string& problem) {
  ChainReport report;
  report.attempt_id = id;
  report.problem = problem;
  return report;
}

std::vector<std::string> texts(SQLite::Statement query) {
  std::vector<std::string> out;
  while (query.executeStep()) out.push_back(query.getColumn(0).getString());
  return out;
}

bool has_row(SQLite::Database& db, Sql sql, const std::string& id) {
  return prepare_with(db, sql, id).executeStep();
}

ChainReport check_attempt(SQLite::Database& db, const std::string& id) {
  auto record = read_record(db, id);
  if (!record) return not_readable(id, record.error().what);
  ChainReport report = check_chain(db, record->value());
  if (report.intact && has_row(db, "SELECT 1 FROM tombstones WHERE attempt_id = ?1", id)) {
    report.problem = "there is a tombstone, but the attempt is there too";
    report.intact = false;
  }
  return report;
}

// Of a tombstone the ledger alone cannot say more than that it can be one: docs/keeping.md.
ChainReport check_tombstone(SQLite::Database& db, const std::string& id) {
  auto tombstone = read_tombstone(db, id);
  if (!tombstone) return not_readable(id, tombstone.error().what);
  ChainReport report;
  report.attempt_id = id;
  report.finished = report.pruned = true;
  report.events = tombstone->value().events;
  report.head = tombstone->value().chain_head;
  if (!is_object_id(report.head) || !is_object_id(tombstone->value().invocation_sha256)) {
    report.problem = "its tombstone has no digests";
  } else if (has_row(db, "SELECT 1 FROM events WHERE attempt_id = ?1", id)) {
    report.problem = "there is a tombstone, but events are there too";
  }
  report.intact = report.problem.empty();
  return report;
}

// Arrivals are numbered without a gap, and a tombstone stands for one that was pruned.
std::uint64_t count_missing(SQLite::Database& db) {
  auto query = prepare(db,
                       "SELECT coalesce(max(arrival), 0) - count(*) - (SELECT count(*) FROM tombstones)"
                       " FROM attempts");
  if (!query.executeStep()) return 0;
  return static_cast<std::uint64_t>(std::max<std::int64_t>(query.getColumn(0).getInt64(), 0));
}

}  // namespace

ChainReport check_chain(SQLite::Database& db, const AttemptRecord& record) {
  const std::string& id = record.attempt.id;
  ChainReport report;
  report.attempt_id = id;
  report.finished = record.attempt.finished;
  report.head = record.attempt.invocation_sha256;
  report.problem = invocation_problem(record);
  if (!report.problem.empty()) return report;
  auto query =
      prepare_with(db, "SELECT seq, at, type, data, hash FROM events WHERE attempt_id = ?1 ORDER BY seq", id);
  contract::Stage stage = contract::Stage::none;
  Event event;
  while (query.executeStep()) {
    event = event_from(query, id);
    ++report.events;
    report.event = report.events;
    if (event.seq != report.events) {
      report.problem = fmt::format("event {} is missing (the next one is {})", report.events, event.seq);
      return report;
    }
    const std::string expected = chain_link(report.head, event);
    if (query.getColumn(4).getString() != expected || !is_canonical(event)) {
      report.problem = fmt::format("event {} ({}) does not continue the chain", event.seq, event.type);
      return report;
    }
    report.head = expected;
    if (auto reached = contract::stage_from_name(event.type)) stage = *reached;
  }
  report.event = 0;
  if (record.result) {
    report.problem = result_problem(record, report, event);
  } else if (stage != record.stage) {
    report.problem = fmt::format("the stage is \"{}\", but the events lead to \"{}\"",
                                 contract::stage_name(record.stage), contract::stage_name(stage));
  }
  report.intact = report.problem.empty();
  return report;
}

Result<ChainReport> Ledger::verify(const std::string& attempt_id) {
  return guarded("cannot read the ledger", [&]() -> Result<ChainReport> {
    SQLite::Database& db = *impl_->db;
    SQLite::Transaction transaction(db);
    if (has_row(db, "SELECT 1 FROM attempts WHERE id = ?1", attempt_id)) return check_attempt(db, attempt_id);
    if (has_row(db, "SELECT 1 FROM tombstones WHERE attempt_id = ?1", attempt_id))
      return check_tombstone(db, attempt_id);
    if (!has_row(db, "SELECT 1 FROM events WHERE attempt_id = ?1", attempt_id))
      return unknown_attempt(attempt_id);
    return not_readable(attempt_id, "its events are there, but the attempt is not");
  });
}

Result<FileReport> Ledger::verify_all() {
  return guarded("cannot read the ledger", [&]() -> Result<FileReport> {
    SQLite::Database& db = *impl_->db;
    FileReport report;
    // With the rows that belong to nobody: what they belonged to was removed.
    for (const std::string& id :
         texts(prepare(db,
                       "SELECT id FROM attempts UNION SELECT attempt_id FROM tombstones"
                       " UNION SELECT attempt_id FROM events"))) {
      TRY(ChainReport one, verify(id));
      report.attempts.push_back(std::move(one));
    }
    report.missing = count_missing(db);
    return report;
  });
}

}  // namespace cofferdam::ledger
