#include "ledger/schema.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/file.h>

#include <array>
#include <cerrno>

#include "base/fd.h"
#include "base/file.h"

namespace cofferdam::ledger {
namespace {

constexpr int kBusyTimeoutMs = 10'000;

// Each entry brings the file from the version of its index to the next one, inside one transaction. Entries
// are never changed once released; PRAGMA user_version takes no parameter, so each one sets its own number.
//
// The triggers make the file append-only for every program that respects the schema, ours first; the hash
// chain is for those that do not.
constexpr std::array<const char*, 1> kMigrations = {
    R"sql(
CREATE TABLE attempts (
  id TEXT NOT NULL PRIMARY KEY,
  created_at INTEGER NOT NULL,
  phase TEXT NOT NULL,
  agent TEXT NOT NULL,
  repository TEXT NOT NULL,
  head TEXT NOT NULL,
  invocation TEXT NOT NULL CHECK (json_valid(invocation)),
  invocation_sha256 TEXT NOT NULL CHECK (length(invocation_sha256) = 64),
  supervisor_pid INTEGER NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('running', 'finished')),
  outcome TEXT,
  result TEXT CHECK (result IS NULL OR json_valid(result)),
  finished_at INTEGER,
  CHECK ((state = 'finished') = (outcome IS NOT NULL)),
  CHECK ((state = 'finished') = (result IS NOT NULL)),
  CHECK ((state = 'finished') = (finished_at IS NOT NULL))
) STRICT;
CREATE INDEX attempts_by_age ON attempts (created_at DESC, id DESC);

CREATE TABLE events (
  attempt_id TEXT NOT NULL REFERENCES attempts (id),
  seq INTEGER NOT NULL CHECK (seq >= 1),
  at INTEGER NOT NULL,
  type TEXT NOT NULL,
  data TEXT NOT NULL CHECK (json_valid(data) AND json_type(data) = 'object'),
  hash TEXT NOT NULL CHECK (length(hash) = 64),
  PRIMARY KEY (attempt_id, seq)
) STRICT, WITHOUT ROWID;

CREATE TRIGGER attempts_start_running BEFORE INSERT ON attempts
WHEN NEW.state <> 'running'
BEGIN SELECT RAISE(ABORT, 'an attempt starts without a result'); END;

CREATE TRIGGER attempts_are_kept BEFORE DELETE ON attempts
BEGIN SELECT RAISE(ABORT, 'attempts are never deleted'); END;

CREATE TRIGGER attempts_have_one_result BEFORE UPDATE ON attempts
WHEN OLD.state = 'finished'
BEGIN SELECT RAISE(ABORT, 'the result of an attempt is written once'); END;

CREATE TRIGGER attempts_are_immutable
BEFORE UPDATE OF id, created_at, phase, agent, repository, head, invocation, invocation_sha256 ON attempts
BEGIN SELECT RAISE(ABORT, 'an admitted invocation is immutable'); END;

CREATE TRIGGER events_are_never_changed BEFORE UPDATE ON events
BEGIN SELECT RAISE(ABORT, 'events are append-only'); END;

CREATE TRIGGER events_are_never_deleted BEFORE DELETE ON events
BEGIN SELECT RAISE(ABORT, 'events are append-only'); END;

CREATE TRIGGER events_come_in_order BEFORE INSERT ON events
WHEN NEW.seq <> 1 + (SELECT coalesce(max(seq), 0) FROM events WHERE attempt_id = NEW.attempt_id)
BEGIN SELECT RAISE(ABORT, 'events are numbered without a gap'); END;

CREATE TRIGGER events_end_with_the_result BEFORE INSERT ON events
WHEN (SELECT state FROM attempts WHERE id = NEW.attempt_id) = 'finished'
BEGIN SELECT RAISE(ABORT, 'a finished attempt gets no more events'); END;

PRAGMA user_version = 1;
)sql",
};

struct FileState {
  int version = 0;
  bool wal = false;
};

FileState read_state(SQLite::Database& db) {
  FileState state;
  state.version = db.execAndGet("PRAGMA user_version").getInt();
  state.wal = db.execAndGet("PRAGMA journal_mode").getString() == "wal";
  return state;
}

Status check_version(int version, const std::string& path) {
  if (version >= 0 && version <= current_version()) return {};
  return make_error(
      Code::config,
      fmt::format("{} was made by a newer version of cofferdam (ledger version {}, this one knows {})", path,
                  version, current_version()),
      "use that version, or another state folder through COFFERDAM_STATE_DIR");
}

// Held while a file is made or migrated: switching a fresh file to WAL from two processes at once is the one
// case in which SQLite reports "busy" without waiting (the busy handler is skipped where it could deadlock).
Result<UniqueFd> lock_setup(const std::string& path) {
  TRY(UniqueFd lock, open_file(path + ".setup-lock", O_RDWR | O_CREAT, 0600));
  while (::flock(lock.get(), LOCK_EX) != 0) {
    if (errno != EINTR) return sys_error("cannot lock " + path + ".setup-lock", errno);
  }
  return lock;
}

Status migrate(SQLite::Database& db, const std::string& path) {
  FileState state = read_state(db);
  TRY_VOID(check_version(state.version, path));
  if (!state.wal && db.execAndGet("PRAGMA journal_mode = WAL").getString() != "wal") {
    return make_error(Code::unsupported_host, path + ": this file system cannot hold an SQLite WAL file",
                      "put the state folder on a local file system: COFFERDAM_STATE_DIR");
  }
  SQLite::Transaction transaction(db, SQLite::TransactionBehavior::IMMEDIATE);
  for (std::size_t version = static_cast<std::size_t>(state.version); version < kMigrations.size();
       ++version) {
    db.exec(kMigrations[version]);
  }
  transaction.commit();
  return {};
}

// Makes the file private from its first moment; SQLite gives its WAL files the same mode. Only ever a new
// file: closing a second descriptor of an open database would drop the process's POSIX locks on it
// (fcntl(2)).
Status create_private(const std::string& path) {
  auto made = open_file(path, O_RDWR | O_CREAT | O_EXCL, 0600);
  if (!made && !exists(path)) return std::move(made).error().with("cannot make the ledger");
  return {};
}

Result<std::unique_ptr<SQLite::Database>> connect(const std::string& path) {
  auto db = std::make_unique<SQLite::Database>(path, SQLite::OPEN_READWRITE, kBusyTimeoutMs);
  db->exec("PRAGMA foreign_keys = ON");
  db->exec("PRAGMA recursive_triggers = ON");  // REPLACE must run into the delete triggers too
  db->exec("PRAGMA synchronous = FULL");
  return db;
}

}  // namespace

int current_version() {
  return static_cast<int>(kMigrations.size());
}

Result<std::unique_ptr<SQLite::Database>> open_database(const std::string& path) {
  return guarded("cannot open the ledger " + path, [&]() -> Result<std::unique_ptr<SQLite::Database>> {
    if (exists(path)) {
      TRY(auto db, connect(path));
      FileState state = read_state(*db);
      TRY_VOID(check_version(state.version, path));
      if (state.wal && state.version == current_version()) return db;
    }
    TRY(UniqueFd lock, lock_setup(path));
    TRY_VOID(create_private(path));
    TRY(auto db, connect(path));
    TRY_VOID(migrate(*db, path));
    return db;
  });
}

}  // namespace cofferdam::ledger
