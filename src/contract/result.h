// The Result: the terminal record of one attempt, written once ("cofferdam.result/1").
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "contract/clone.h"
#include "contract/invocation.h"
#include "contract/phase.h"

namespace cofferdam::contract {

// The first thing that ended the attempt; later ones never overwrite it.
struct Cause {
  std::string
      control;         // "exit", "deadline", "cancel", "requests", "answer", "storage", a control's name, ...
  std::string detail;  // one line for people
  Timestamp at;
};

struct ProcessFacts {  // the agent's main process, as the kernel gave it
  std::optional<int> exit_code;
  std::optional<int> signal;
  std::optional<Timestamp> started_at;
  std::optional<Timestamp> ended_at;
};

struct CancelFacts {
  Timestamp requested_at;
  std::string by;  // "signal", "stdin", "command"
  std::string reason;
};

struct SettlementFacts {
  std::optional<Timestamp> box_gone_at;
  bool killed = false;                 // grace ran out, or processes were left when the program had ended
  std::uint64_t took_ms = 0;           // from first cause to box gone
  std::vector<std::string> left = {};  // outcome `lost`: what could not be ended, at most 64
};

// What the program printed. Head and tail of each stream are kept in files of the attempt's, the rest is
// counted.
struct OutputFacts {
  std::uint64_t stdout_bytes = 0;
  std::uint64_t stderr_bytes = 0;
  std::uint64_t dropped_bytes = 0;  // of both: neither in the head nor in the tail that is kept
  std::uint64_t dropped_lines = 0;  // of the agent's event stream: over the bound of one line
  std::uint64_t events = 0;         // decoded, recorded or not
};

// Where the work lies while the attempt runs, and what it survives.
struct StorageFacts {
  std::string kind;           // "tmpfs", "image", "slot"
  std::uint64_t kept_ms = 0;  // how long it is kept for a recovery once the supervisor has gone
  // How the work tree came into it: "overlay" over a cached tree, the cached tree itself ("read-only"), or a
  // full "checkout", with the reason when it was not what had been planned.
  std::string tree = {};
  std::string tree_reason = {};
  bool has_upper_layer() const { return tree == "overlay"; }
};

// An attempt whose supervisor went away was closed by somebody else.
struct RecoveryFacts {
  Timestamp at;
  std::string stage;  // the last step that the supervisor had recorded: the event's type
};

struct ChangedFile {
  std::string path;    // raw bytes; printed escaped
  std::string status;  // "added", "modified", "deleted", "type-changed"
};

struct Finding {
  std::string rule;  // "nested-git", "special-file", ...
  std::string path;
  std::string action;  // "reported", "dropped", "refused"
};

// One commit of ours that holds what the agent had made so far.
struct ChangeCommit {
  std::string commit;
  std::string tree;
  Timestamp at;
  std::string by;  // "command", "agent" (a natural step of it), "end"
};

struct ChangeFacts {
  std::string base;  // the trusted head, or our commit of the caller's uncommitted files on top of it
  std::optional<std::string> commit;
  std::optional<std::string> tree;
  std::optional<std::string> ref;  // null unless published
  std::vector<ChangedFile> files;  // at most 10 000; `file_count` has the true number
  std::uint64_t file_count = 0;
  std::vector<Finding> findings;
  std::uint64_t more_findings = 0;  // beyond these
  std::uint64_t ignored_files = 0;
  std::vector<std::string> ignored = {};   // the first of them, at most kMaxIgnoredListed
  std::vector<ChangeCommit> commits = {};  // in order, the last one is `commit`; at most kMaxCommits
};

struct Usage {
  std::uint64_t requests = 0;
  std::uint64_t input_tokens = 0;
  std::uint64_t output_tokens = 0;
  std::optional<double> cost_usd;  // of what the vendor counted, by our price table; none: no price known
  std::optional<double> agent_cost_usd;  // as the agent itself reports it
};

struct Resources {
  // Bytes, the largest of: what the box's group was charged with, getrusage(2) of a process, all as sampled.
  std::uint64_t peak_memory = 0;
  std::uint64_t peak_pids = 0;  // as the group has it, or init sampled them
  std::uint64_t cpu_ms = 0;
  std::uint64_t work_bytes = 0;
  std::uint64_t work_inodes = 0;
};

// One destination of the invocation, and what went over it.
struct DestinationFacts {
  std::string host;
  std::uint16_t port = 443;
  std::uint64_t connections = 0;
  std::uint64_t denied = 0;
  std::uint64_t sent = 0;      // bytes from the box
  std::uint64_t received = 0;  // bytes to the box
};

struct EgressFacts {
  std::uint64_t requests = 0;  // to the vendor
  std::uint64_t denied = 0;    // by either listener
  std::vector<DestinationFacts> destinations = {};
};

struct ControlFact {
  std::string name;
  bool required = true;
  bool enforced = false;
  std::string proof;  // "inside probe: ...", "by construction: ..."
};

struct Publication {
  std::string state;  // "published", "none", "failed", "stale"
  std::string reason;
};

struct AgentFacts {
  std::string name;
  std::string version;  // as pinned, never as the agent says; empty for "command"
  std::string model;
};

struct ImageFacts {
  std::string kind = "host";  // the host's /usr: not pinned; "image"
  bool pinned = false;        // the control pinned-root was in force
  std::string digest = {};    // of an image: "sha256:..."
};

struct ResultRecord {
  std::string attempt_id;
  std::string invocation_sha256;
  Phase phase = Phase::question;
  Outcome outcome = Outcome::setup_failed;
  Cause cause;
  ProcessFacts process;
  std::optional<CancelFacts> cancel;
  SettlementFacts settlement;
  std::optional<Timestamp> answered_at;  // when the agent's final answer was read
  OutputFacts output;
  std::optional<StorageFacts> storage;
  std::optional<RecoveryFacts> recovery;
  std::optional<std::string> answer;  // text, or the checked JSON of a plan
  std::string summary;                // bounded, printable
  ChangeFacts change;
  Usage usage;
  Resources resources;
  EgressFacts egress;
  std::vector<ControlFact> controls;
  Publication publication;
  AgentFacts agent;
  ImageFacts image;
  std::string backend = "native";
  Shell shell = Shell::sandboxed;         // as the invocation asked
  std::string vendor_upstream;            // where the gateway sent requests; empty without egress
  std::vector<std::string> vendor_tools;  // server-side tools that the user had opted in to
  std::optional<CloneIdentity> clone;
  std::optional<SourceFacts> source;
  std::optional<CapturedContext> context;
  Timestamp created_at;
  std::string chain_head;  // of the ledger's hash chain, the result itself not included
};

std::string encode_result(const ResultRecord& result);  // one line, canonical
Result<ResultRecord> decode_result(std::string_view json);

}  // namespace cofferdam::contract
