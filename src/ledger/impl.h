// What the ledger's own files share: the open file, write transactions, and the rows that several of them
// read.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "contract/lifecycle.h"
#include "ledger/ledger.h"
#include "ledger/lock.h"
#include "ledger/sql.h"

namespace cofferdam::ledger {

// The open file.
struct Store {
  std::unique_ptr<SQLite::Database> db;
  FileLock lock;
  Options options;

  Timestamp now() const { return options.clock(); }

  // Runs `body`, which returns a Result or Status, in one write transaction: committed when it succeeds,
  // rolled back otherwise. Writers take turns at a lock of their own, so that SQLite's busy timeout is only
  // ever met by what does not know that lock.
  template <typename Body>
  auto write(const std::string& doing, Body&& body) -> std::invoke_result_t<Body, SQLite::Database&> {
    return guarded(doing, [&]() -> std::invoke_result_t<Body, SQLite::Database&> {
      auto held = lock.take(options.write_wait);
      if (!held) return held.error().with(doing);
      SQLite::Transaction transaction(*db, SQLite::TransactionBehavior::IMMEDIATE);
      auto done = std::forward<Body>(body)(*db);
      if (done) transaction.commit();
      return done;
    });
  }
};
struct Ledger::Impl : Store {};

// What admission and appending need to know of an attempt.
struct State {
  bool finished = false;
  std::string outcome;
  std::string invocation_sha256;
  contract::Stage stage = contract::Stage::none;
  bool waiting = false;
  bool pruned = false;  // only its tombstone is left
};
// nullopt: there was never an attempt of this id.
Result<std::optional<State>> read_state(SQLite::Database& db, const std::string& id);

struct Head {
  std::uint64_t seq = 0;
  std::string hash;
};
Head read_head(SQLite::Database& db, const std::string& id, const std::string& invocation_sha256);
// The hash of an event behind `previous`.
std::string chain_link(const std::string& previous, const contract::Event& event);
contract::Event event_from(SQLite::Statement& row, const std::string& id);  // seq, at, type, data

// Appends within the caller's transaction; the draft goes with the last event.
Result<std::vector<contract::Event>> append_in(Store& store, const std::string& id,
                                               const std::vector<NewEvent>& events,
                                               const std::optional<std::string>& draft);

Result<std::optional<AttemptRecord>> read_record(SQLite::Database& db, const std::string& id);
// Code::conflict when the context is unknown, at another version, or recorded with another digest.
Status check_context(SQLite::Database& db, const contract::CapturedContext& context);
// The rows of an attempt from its invocation to its result, each against what it must be.
ChainReport check_chain(SQLite::Database& db, const AttemptRecord& record);
Result<std::optional<Tombstone>> read_tombstone(SQLite::Database& db, const std::string& id);

Error unknown_attempt(const std::string& id);

}  // namespace cofferdam::ledger
