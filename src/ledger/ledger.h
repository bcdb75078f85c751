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

#include <chrono>
#include <cstdint>
#include <functional>
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

struct Closed {
  contract::Event event;  // `finished`
  contract::ResultRecord result;
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

// What may run at a time; 0: not bounded.
struct Capacity {
  std::uint64_t attempts = 0;
  std::uint64_t memory_bytes = 0;  // of the limits.memory_bytes of all of them together
  std::uint64_t each_bytes = 0;    // what every attempt takes of it beside that, for boxes of ours
};

struct Admission {
  bool admitted = false;                // false: it waits
  std::uint64_t position = 0;           // in the queue, from 1; 0 once admitted
  std::vector<contract::Event> events;  // what was recorded
};

// A captured context: what prompts are built from, and which version of it is the current one.
struct Context {
  std::string name;
  std::uint64_t version = 0;
  std::optional<std::string> sha256;  // none: any digest is taken
  Timestamp changed_at;
};

struct PublicationClaim {
  std::string attempt_id;
  std::optional<contract::CapturedContext> context;  // none: nothing to be stale against
  std::string ref;
  std::string commit;
};
struct ClaimAnswer {
  bool claimed = false;
  std::string reason;                   // why not: the context is stale
  std::vector<contract::Event> events;  // none for an attempt that has its result
};

// What the ledger knows of an attempt's publication.
struct PublicationRecord {
  std::optional<std::string> context_name;
  std::uint64_t context_version = 0;
  std::string ref;
  std::string commit;
  std::string state;  // "claimed", "published", "failed", "stale"
  std::string reason;
  Timestamp changed_at;
};

struct Options {
  // How long a write waits for other writers, and how long SQLite then waits for what does not know our lock.
  std::chrono::milliseconds write_wait = std::chrono::minutes(2);
  std::function<Timestamp()> clock = [] { return cofferdam::now(); };
};

class Ledger {
 public:
  // Opens or makes the file (mode 0600; its folder must exist). Code::config when a newer version made it,
  // Code::protocol when it is not a ledger or damaged.
  static Result<Ledger> open(const std::string& path, Options options = {});
  Ledger(Ledger&& other) noexcept;
  Ledger& operator=(Ledger&& other) noexcept;
  ~Ledger();

  // Records the invocation before anything starts. Code::conflict when the id was admitted before, by any
  // process at any time; the message says whether that was the same invocation.
  // Code::conflict, too, when its context is unknown or not as the ledger has it. A refusal leaves no row.
  Status admit(const contract::Invocation& invocation, pid_t supervisor_pid);
  // The same within a capacity, with the event: `admitted`, or `queued` when the capacity is taken.
  // Code::exhausted when it is taken and the invocation does not want to wait, or when the attempt alone is
  // larger.
  Result<Admission> admit(const contract::Invocation& invocation, pid_t supervisor_pid,
                          const Capacity& capacity, const std::optional<std::string>& draft = std::nullopt);
  // For an attempt that waits: admitted when it is the first and there is room. The context is checked again
  // (Code::conflict). Another position than before is an event `queued`.
  Result<Admission> leave_queue(const std::string& attempt_id, const Capacity& capacity,
                                const std::optional<std::string>& draft = std::nullopt);
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
  // The last event and the result, whose chain_head is filled in, in one transaction: there is no attempt
  // that has the one and not the other. `data_json` is the event's.
  Result<Closed> close(contract::ResultRecord result, const std::string& data_json);
  // Writes the result, once. Its chain_head and invocation_sha256 must be those of the ledger at that moment.
  Status finish(const contract::ResultRecord& result);

  // Compare-and-swap: from 0 when there is none of that name yet. Code::usage for what cannot be,
  // Code::conflict when the context is at another version.
  Result<Context> set_context(const std::string& name, std::uint64_t from, std::uint64_t to,
                              const std::optional<std::string>& sha256 = std::nullopt);
  Result<std::optional<Context>> context(const std::string& name);
  Result<std::vector<Context>> contexts();  // by name

  // In one transaction: the context is at that version, and no other attempt holds or has published a change
  // made from it. Event `publishing`, or `not-published` when it is stale. An attempt that has its result is
  // claimed for without events: its chain is closed. Code::conflict when it is published already.
  Result<ClaimAnswer> claim_publication(const PublicationClaim& claim,
                                        const std::optional<std::string>& draft = std::nullopt);
  // The claim's end: event `published`, or `not-published` with the claim given back.
  Result<std::vector<contract::Event>> close_publication(
      const std::string& attempt_id, bool published, const std::string& reason,
      const std::optional<std::string>& draft = std::nullopt);
  Result<std::optional<PublicationRecord>> publication(const std::string& attempt_id);

  Result<std::vector<Attempt>> list(std::size_t limit);  // newest first
  // The ids of all attempts without a result, oldest first.
  Result<std::vector<std::string>> unfinished();
  // The ids of attempts whose last try at a publication failed, oldest first.
  Result<std::vector<std::string>> failed_publications();
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
