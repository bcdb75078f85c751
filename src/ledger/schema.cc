#include "ledger/schema.h"

#include <fcntl.h>
#include <fmt/core.h>

#include <array>

#include "base/fd.h"
#include "base/file.h"
#include "ledger/lock.h"

namespace cofferdam::ledger {
namespace {

// Each entry brings the file from the version of its index to the next one, inside one transaction. Entries
// are never changed once released; PRAGMA user_version takes no parameter, so each one sets its own number.
//
// The triggers make the file append-only for every program that respects the schema, ours first; the hash
// chain is for those that do not.
constexpr std::array<const char*, 2> kMigrations = {
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
    // Version 2: the queue, stages and drafts, captured contexts, publications, and what is left of pruned
    // attempts. Results of version 1 get the keys that the contract has gained since.
    R"sql(
ALTER TABLE attempts ADD COLUMN arrival INTEGER NOT NULL DEFAULT 0;
ALTER TABLE attempts ADD COLUMN waiting INTEGER NOT NULL DEFAULT 0 CHECK (waiting IN (0, 1));
ALTER TABLE attempts ADD COLUMN memory_bytes INTEGER NOT NULL DEFAULT 0 CHECK (memory_bytes >= 0);
ALTER TABLE attempts ADD COLUMN stage TEXT NOT NULL DEFAULT 'none';
ALTER TABLE attempts ADD COLUMN draft TEXT CHECK (draft IS NULL OR json_valid(draft));

DROP TRIGGER attempts_have_one_result;
UPDATE attempts SET
  arrival = rowid,
  memory_bytes = coalesce(json_extract(invocation, '$.limits.memory_bytes'), 0),
  stage = CASE state WHEN 'finished' THEN 'finished' ELSE coalesce(
    (SELECT type FROM events WHERE attempt_id = attempts.id
     AND type NOT IN ('agent', 'egress', 'cancel-requested') ORDER BY seq DESC LIMIT 1), 'none') END,
  result = json_insert(result,
    '$.answered_at', NULL,
    '$.output', json('{"dropped_bytes":0,"dropped_lines":0,"events":0,"stderr_bytes":0,"stdout_bytes":0}'),
    '$.storage', NULL,
    '$.recovery', NULL,
    '$.settlement.left', json('[]'),
    '$.resources.peak_pids', 0);
UPDATE attempts SET result = json_insert(result, '$.context.files', json('[]'))
WHERE json_type(result, '$.context') = 'object';
CREATE TRIGGER attempts_have_one_result BEFORE UPDATE ON attempts
WHEN OLD.state = 'finished'
BEGIN SELECT RAISE(ABORT, 'the result of an attempt is written once'); END;

CREATE UNIQUE INDEX attempts_by_arrival ON attempts (arrival DESC);
CREATE INDEX attempts_unfinished ON attempts (arrival) WHERE state = 'running';
CREATE TRIGGER attempts_keep_their_place BEFORE UPDATE OF arrival, memory_bytes ON attempts
BEGIN SELECT RAISE(ABORT, 'an admitted invocation is immutable'); END;
CREATE TRIGGER attempts_enter_once BEFORE UPDATE OF waiting ON attempts
WHEN NEW.waiting > OLD.waiting
BEGIN SELECT RAISE(ABORT, 'an attempt that left the queue does not wait again'); END;

CREATE TABLE contexts (
  name TEXT NOT NULL PRIMARY KEY,
  version INTEGER NOT NULL CHECK (version >= 1),
  sha256 TEXT CHECK (sha256 IS NULL OR length(sha256) = 64),
  changed_at INTEGER NOT NULL
) STRICT;
CREATE TRIGGER contexts_are_made_once BEFORE INSERT ON contexts
WHEN EXISTS (SELECT 1 FROM contexts WHERE name = NEW.name)
BEGIN SELECT RAISE(ABORT, 'a context is made once'); END;
CREATE TRIGGER contexts_go_forward BEFORE UPDATE ON contexts
WHEN NEW.name <> OLD.name OR NEW.version <= OLD.version
BEGIN SELECT RAISE(ABORT, 'the version of a context goes forward only'); END;
CREATE TRIGGER contexts_are_kept BEFORE DELETE ON contexts
BEGIN SELECT RAISE(ABORT, 'contexts are never deleted'); END;

CREATE TABLE publications (
  attempt_id TEXT NOT NULL PRIMARY KEY,
  context_name TEXT,
  context_version INTEGER,
  ref TEXT NOT NULL,
  commit_id TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('claimed', 'published', 'failed', 'stale')),
  reason TEXT NOT NULL DEFAULT '',
  changed_at INTEGER NOT NULL,
  CHECK ((context_name IS NULL) = (context_version IS NULL))
) STRICT;
CREATE UNIQUE INDEX publications_one_per_context ON publications (context_name, context_version)
WHERE state IN ('claimed', 'published');
CREATE TRIGGER publications_are_made_once BEFORE INSERT ON publications
WHEN EXISTS (SELECT 1 FROM publications WHERE attempt_id = NEW.attempt_id)
BEGIN SELECT RAISE(ABORT, 'an attempt has one publication'); END;
CREATE TRIGGER publications_are_final BEFORE UPDATE ON publications
WHEN OLD.state = 'published' OR NEW.attempt_id <> OLD.attempt_id
BEGIN SELECT RAISE(ABORT, 'what is published stays published'); END;
CREATE TRIGGER publications_are_kept BEFORE DELETE ON publications
BEGIN SELECT RAISE(ABORT, 'publications are never deleted'); END;

CREATE TABLE tombstones (
  attempt_id TEXT NOT NULL PRIMARY KEY,
  invocation_sha256 TEXT NOT NULL CHECK (length(invocation_sha256) = 64),
  outcome TEXT NOT NULL,
  chain_head TEXT NOT NULL CHECK (length(chain_head) = 64),
  events INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  finished_at INTEGER NOT NULL,
  pruned_at INTEGER NOT NULL
) STRICT;
CREATE TRIGGER tombstones_follow_a_result BEFORE INSERT ON tombstones
WHEN NOT EXISTS (SELECT 1 FROM attempts WHERE id = NEW.attempt_id AND state = 'finished'
                 AND invocation_sha256 = NEW.invocation_sha256 AND outcome = NEW.outcome)
BEGIN SELECT RAISE(ABORT, 'only a finished attempt is pruned'); END;
CREATE TRIGGER tombstones_are_made_once BEFORE INSERT ON tombstones
WHEN EXISTS (SELECT 1 FROM tombstones WHERE attempt_id = NEW.attempt_id)
BEGIN SELECT RAISE(ABORT, 'tombstones are insert-only'); END;
CREATE TRIGGER tombstones_are_never_changed BEFORE UPDATE ON tombstones
BEGIN SELECT RAISE(ABORT, 'tombstones are insert-only'); END;
CREATE TRIGGER tombstones_are_never_deleted BEFORE DELETE ON tombstones
BEGIN SELECT RAISE(ABORT, 'tombstones are insert-only'); END;

CREATE TRIGGER attempts_are_admitted_once BEFORE INSERT ON attempts
WHEN EXISTS (SELECT 1 FROM tombstones WHERE attempt_id = NEW.id)
BEGIN SELECT RAISE(ABORT, 'an attempt id is used once'); END;
DROP TRIGGER attempts_are_kept;
CREATE TRIGGER attempts_are_kept BEFORE DELETE ON attempts
WHEN NOT EXISTS (SELECT 1 FROM tombstones WHERE attempt_id = OLD.id)
BEGIN SELECT RAISE(ABORT, 'attempts are never deleted without a tombstone'); END;
DROP TRIGGER events_are_never_deleted;
CREATE TRIGGER events_are_never_deleted BEFORE DELETE ON events
WHEN NOT EXISTS (SELECT 1 FROM tombstones WHERE attempt_id = OLD.attempt_id)
BEGIN SELECT RAISE(ABORT, 'events are append-only'); END;

PRAGMA user_version = 2;
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
  // Into the file itself: a lost log must not make this an empty ledger.
  db.exec("PRAGMA wal_checkpoint(TRUNCATE)");
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

Result<std::unique_ptr<SQLite::Database>> connect(const std::string& path, std::chrono::milliseconds wait) {
  auto db = std::make_unique<SQLite::Database>(path, SQLite::OPEN_READWRITE, static_cast<int>(wait.count()));
  db->exec("PRAGMA foreign_keys = ON");
  db->exec("PRAGMA recursive_triggers = ON");  // REPLACE must run into the delete triggers too
  db->exec("PRAGMA synchronous = FULL");
  return db;
}

}  // namespace

int current_version() {
  return static_cast<int>(kMigrations.size());
}

Result<std::unique_ptr<SQLite::Database>> open_database(const std::string& path,
                                                        std::chrono::milliseconds wait) {
  return guarded("cannot open the ledger " + path, [&]() -> Result<std::unique_ptr<SQLite::Database>> {
    if (exists(path)) {
      TRY(auto db, connect(path, wait));
      FileState state = read_state(*db);
      TRY_VOID(check_version(state.version, path));
      if (state.wal && state.version == current_version()) return db;
    }
    // Held while a file is made or migrated: switching a fresh file to WAL from two processes at once is the
    // one case in which SQLite reports "busy" without waiting (the busy handler is skipped where it could
    // deadlock).
    FileLock setup(path + ".setup-lock");
    TRY(const FileLock::Held held, setup.take(wait));
    TRY_VOID(create_private(path));
    TRY(auto db, connect(path, wait));
    TRY_VOID(migrate(*db, path));
    return db;
  });
}

}  // namespace cofferdam::ledger
