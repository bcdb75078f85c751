// Publications: of all attempts that were made from one version of a context, one is published.
#include <fmt/core.h>

#include "contract/json.h"
#include "ledger/impl.h"

namespace cofferdam::ledger {

using contract::Event;
using contract::Json;

namespace {

std::optional<PublicationRecord> read_publication(SQLite::Database& db, const std::string& id) {
  auto query = prepare_with(db,
                            "SELECT context_name, context_version, ref, commit_id, state, reason, changed_at"
                            " FROM publications WHERE attempt_id = ?1",
                            id);
  if (!query.executeStep()) return std::nullopt;
  PublicationRecord out;
  if (!query.getColumn(0).isNull()) {
    out.context_name = query.getColumn(0).getString();
    out.context_version = static_cast<std::uint64_t>(query.getColumn(1).getInt64());
  }
  out.ref = query.getColumn(2).getString();
  out.commit = query.getColumn(3).getString();
  out.state = query.getColumn(4).getString();
  out.reason = query.getColumn(5).getString();
  out.changed_at = Timestamp{query.getColumn(6).getInt64()};
  return out;
}

// Why a change made from this context cannot be published; empty when it can.
Result<std::string> stale_reason(SQLite::Database& db, const PublicationClaim& claim) {
  if (!claim.context.has_value()) return std::string();
  if (Status current = check_context(db, *claim.context); !current) {
    if (current.error().code != Code::conflict) return current.error();
    return current.error().what;
  }
  auto query =
      prepare_with(db,
                   "SELECT attempt_id, state FROM publications WHERE context_name = ?1"
                   " AND context_version = ?2 AND attempt_id <> ?3"
                   " AND state IN ('claimed', 'published')",
                   claim.context->name, static_cast<std::int64_t>(claim.context->version), claim.attempt_id);
  if (!query.executeStep()) return std::string();
  return fmt::format("attempt \"{}\" {} from version {} of the context \"{}\"",
                     query.getColumn(0).getString(),
                     query.getColumn(1).getString() == "published" ? "has published its change made"
                                                                   : "is publishing its change made",
                     claim.context->version, claim.context->name);
}

void write_claim(Store& store, const PublicationClaim& claim, const std::string& state,
                 const std::string& reason) {
  std::optional<std::string> name;
  std::optional<std::int64_t> version;
  if (claim.context.has_value()) {
    name = claim.context->name;
    version = static_cast<std::int64_t>(claim.context->version);
  }
  prepare_with(
      *store.db,
      read_publication(*store.db, claim.attempt_id).has_value()
          ? Sql("UPDATE publications SET context_name = ?2, context_version = ?3, ref = ?4,"
                " commit_id = ?5, state = ?6, reason = ?7, changed_at = ?8 WHERE attempt_id = ?1")
          : Sql("INSERT INTO publications (attempt_id, context_name, context_version, ref, commit_id,"
                " state, reason, changed_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)"),
      claim.attempt_id, name, version, claim.ref, claim.commit, state, reason, store.now())
      .exec();
}

NewEvent place_event(const char* type, const std::string& ref, const std::string& commit) {
  return {type, contract::canonical(Json{{"ref", ref}, {"commit", commit}})};
}

NewEvent refusal_event(const char* state, const std::string& reason) {
  return {contract::event_type::not_published,
          contract::canonical(Json{{"state", state}, {"reason", contract::json_text(reason, 2000)}})};
}

// The event, unless the chain is closed, or says so already: a supervisor that died behind its claim.
Result<std::vector<Event>> record(Store& store, const std::string& id, const State& state,
                                  const NewEvent& event, const std::optional<std::string>& draft) {
  if (state.finished || event.type == contract::stage_name(state.stage)) return std::vector<Event>{};
  return append_in(store, id, {event}, draft);
}

Result<State> known_attempt(SQLite::Database& db, const std::string& id) {
  TRY(const auto state, read_state(db, id));
  if (!state || state->pruned) return unknown_attempt(id);
  return *state;
}

}  // namespace

Result<ClaimAnswer> Ledger::claim_publication(const PublicationClaim& claim,
                                              const std::optional<std::string>& draft) {
  return impl_->write("cannot claim the publication", [&](SQLite::Database& db) -> Result<ClaimAnswer> {
    TRY(const State state, known_attempt(db, claim.attempt_id));
    const auto before = read_publication(db, claim.attempt_id);
    if (before.has_value() && before->state == "published") {
      return make_error(Code::conflict, fmt::format("attempt \"{}\" is published already: {}",
                                                    claim.attempt_id, before->ref));
    }
    ClaimAnswer answer;
    TRY(answer.reason, stale_reason(db, claim));
    answer.claimed = answer.reason.empty();
    write_claim(*impl_, claim, answer.claimed ? "claimed" : "stale", answer.reason);
    const NewEvent event = answer.claimed
                               ? place_event(contract::event_type::publishing, claim.ref, claim.commit)
                               : refusal_event("stale", answer.reason);
    TRY(answer.events, record(*impl_, claim.attempt_id, state, event, draft));
    return answer;
  });
}

Result<std::vector<Event>> Ledger::close_publication(const std::string& attempt_id, bool published,
                                                     const std::string& reason,
                                                     const std::optional<std::string>& draft) {
  return impl_->write(
      "cannot close the publication", [&](SQLite::Database& db) -> Result<std::vector<Event>> {
        TRY(const State state, known_attempt(db, attempt_id));
        const auto claim = read_publication(db, attempt_id);
        if (!claim.has_value() || claim->state != "claimed") {
          return make_error(Code::conflict,
                            fmt::format("attempt \"{}\" holds no claim to publish ({})", attempt_id,
                                        claim.has_value() ? claim->state : "none was made"));
        }
        prepare_with(db,
                     "UPDATE publications SET state = ?2, reason = ?3, changed_at = ?4 WHERE attempt_id = ?1",
                     attempt_id, std::string(published ? "published" : "failed"), reason, impl_->now())
            .exec();
        const NewEvent event = published
                                   ? place_event(contract::event_type::published, claim->ref, claim->commit)
                                   : refusal_event("failed", reason);
        return record(*impl_, attempt_id, state, event, draft);
      });
}

Result<std::optional<PublicationRecord>> Ledger::publication(const std::string& attempt_id) {
  return guarded("cannot read the ledger", [&]() -> Result<std::optional<PublicationRecord>> {
    return read_publication(*impl_->db, attempt_id);
  });
}

Result<std::vector<std::string>> Ledger::failed_publications() {
  return guarded("cannot read the ledger", [&]() -> Result<std::vector<std::string>> {
    // A claim of a finished attempt is that of a retry which was broken off.
    auto query = prepare(*impl_->db,
                         "SELECT attempt_id FROM publications JOIN attempts ON id = attempt_id"
                         " WHERE attempts.state = 'finished' AND publications.state IN ('failed', 'claimed')"
                         " ORDER BY arrival");
    std::vector<std::string> ids;
    while (query.executeStep()) ids.push_back(query.getColumn(0).getString());
    return ids;
  });
}

}  // namespace cofferdam::ledger
