// The ledger: which attempts were admitted, everything that happened to each, and its one result.
// Append-only.
//
// Each attempt has a hash chain over its events: hash = sha256(previous hash "\n" the event's canonical
// line), and the first previous hash is the invocation's SHA-256. The chain's head stands in the result, so
// an edit, a cut or a reorder is found by verify(); a cut tail of an unfinished attempt, and an attempt whose
// whole chain was written anew, can be seen only from outside: by a copy of the result.
//
// Thread rules: one Ledger belongs to one thread; any number of them, in any number of processes, may be open
// on one file. A Ledger must not be carried across fork(2).
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "contract/event.h"
#include "contract/invocation.h"
#include "contract/lifecycle.h"
#include "contract/phase.h"
#include "contract/result.h"

namespace cofferdam::ledger {

// One row of list().
struct Attempt {
  std::string id;
  Timestamp created_at;
  contract::Phase phase = contract::Phase::question;
  std::string agent;
  std::string repository;
  std::string head;
  std::string invocation_sha256;
  pid_t supervisor_pid = 0;
  bool finished = false;
  bool waiting = false;                      // in the queue: not finished, and nothing of it runs yet
  std::optional<contract::Outcome> outcome;  // set when finished
  std::optional<Timestamp> finished_at;      // set when finished
};

// Everything that is stored of an attempt but its events.
struct AttemptRecord {
  Attempt attempt;
  std::string invocation;             // canonical JSON
  std::optional<std::string> result;  // the result record's canonical line; set when finished
  std::optional<std::string> draft;   // a result record as of the last change of stage; none when finished
  contract::Stage stage = contract::Stage::none;
  bool waiting = false;
};

struct NewEvent {
  std::string type;
  std::string data = "{}";  // a JSON object
};

// What is left of an attempt that was pruned. Its id is never admitted again.
struct Tombstone {
  std::string attempt_id;
  std::string invocation_sha256;
  contract::Outcome outcome = contract::Outcome::lost;
  std::string chain_head;  // as in its result
  std::uint64_t events = 0;
  Timestamp created_at;
  Timestamp finished_at;
  Timestamp pruned_at;
};

// What verify() found. `problem` names the first place where the account does not hold, empty when intact.
struct ChainReport {
  std::string attempt_id;
  bool intact = false;
  bool finished = false;
  bool pruned = false;       // only the tombstone is left, and was looked at
  std::uint64_t events = 0;  // up to the problem
  std::uint64_t event = 0;   // at which the problem is; 0: at none
  std::string head;
  std::string problem;
};

// What verify_all() found, in the order of the ids.
struct FileReport {
  std::vector<ChainReport> attempts;
  std::uint64_t missing = 0;  // attempts that were admitted once and have neither a row nor a tombstone
};

class Ledger {
 public:
  // Opens or makes the file (mode 0600; its folder must exist). Code::config when a newer version made it,
  // Code::protocol when it is not a ledger or damaged.
  static Result<Ledger> open(const std::string& path);
  Ledger(Ledger&& other) noexcept;
  Ledger& operator=(Ledger&& other) noexcept;
  ~Ledger();

  // Records the invocation before anything starts. Code::conflict when the id was admitted before, by any
  // process at any time; the message says whether that was the same invocation.
  Status admit(const contract::Invocation& invocation, pid_t supervisor_pid);
  // Appends one event; `data_json` is a JSON object. Code::conflict once the attempt is finished, and for an
  // event that cannot come in the attempt's stage. `draft`, an encoded result record, is stored in the same
  // transaction: what a recovery starts from.
  Result<contract::Event> append(const std::string& attempt_id, const std::string& type,
                                 const std::string& data_json,
                                 const std::optional<std::string>& draft = std::nullopt);
  // All of them or none.
  Result<std::vector<contract::Event>> append_all(const std::string& attempt_id,
                                                  const std::vector<NewEvent>& events,
                                                  const std::optional<std::string>& draft = std::nullopt);
  // The hash of the last event, or the invocation's SHA-256 before the first.
  Result<std::string> chain_head(const std::string& attempt_id);
  // Writes the result, once. Its chain_head and invocation_sha256 must be those of the ledger at that moment.
  Status finish(const contract::ResultRecord& result);

  Result<std::vector<Attempt>> list(std::size_t limit);  // newest first
  // The ids of all attempts without a result, oldest first.
  Result<std::vector<std::string>> unfinished();
  Result<std::optional<AttemptRecord>> find(const std::string& attempt_id);
  Result<std::vector<contract::Event>> events(const std::string& attempt_id);  // in order
  // Those behind `seq`, in order, at most `limit`. None for an unknown id.
  Result<std::vector<contract::Event>> events_after(const std::string& attempt_id, std::uint64_t seq,
                                                    std::size_t limit);
  // Another number than before when somebody else has written to the file meanwhile. Cheap enough to poll.
  Result<std::int64_t> data_version();

  // Recomputes the chain. Code::not_found for an unknown id; what does not hold is in the report.
  Result<ChainReport> verify(const std::string& attempt_id);
  Result<FileReport> verify_all();

  // Replaces the rows of a finished attempt by a tombstone. Code::not_found for an unknown or pruned id,
  // Code::conflict while it has no result, Code::protocol when its record does not hold (it is kept).
  Result<Tombstone> prune(const std::string& attempt_id);
  Result<std::optional<Tombstone>> find_tombstone(const std::string& attempt_id);

 private:
  struct Impl;
  explicit Ledger(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// Where the ledger of a state folder lies.
std::string ledger_path(const std::string& state_dir);

}  // namespace cofferdam::ledger
