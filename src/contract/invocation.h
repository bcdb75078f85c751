// The Invocation: the immutable request that one attempt executes ("cofferdam.invocation/1").
//
// A value with only const access: built by decode_invocation() or build_invocation(), both of which enforce
// every rule below, so whoever holds one holds a valid one. Planning, question and review cannot carry
// commands; deadlines are finite and positive; the head is a full object id.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "contract/clone.h"
#include "contract/destination.h"
#include "contract/phase.h"

namespace cofferdam::contract {

inline constexpr std::size_t kMaxInvocationBytes = 4U << 20U;
inline constexpr std::size_t kMaxPromptBytes = 1U << 20U;
inline constexpr std::size_t kMaxAnswerSchemaBytes = 64U << 10U;
inline constexpr std::size_t kMaxContextFiles = 1000;
inline constexpr std::size_t kMaxArgvEntries = 4096;
inline constexpr std::size_t kMaxArgBytes = 128U << 10U;

// "claude", "codex", or "command" with an argv (any program, no agent).
struct AgentSpec {
  std::string name;
  std::vector<std::string> argv;            // only, and never empty, for "command"
  std::optional<std::string> version = {};  // if given, the pinned version must be exactly this
  bool operator==(const AgentSpec&) const = default;
};

// The caller's uncommitted files as a commit of Cofferdam's own on top of the head, made before the
// invocation.
struct WorkTreeBase {
  std::string commit;  // full object ids
  std::string tree;
  bool operator==(const WorkTreeBase&) const = default;
};

struct CloneRequest {
  std::string repository;                      // absolute path of the work tree or git directory
  std::string head;                            // full object id of the trusted commit
  std::optional<std::string> tree;             // if given, must be the head's tree
  History history = History::full;             // how much of it the box gets
  std::optional<WorkTreeBase> work_tree = {};  // none: the attempt works on the head
  bool operator==(const CloneRequest&) const = default;
};

struct ContextFile {
  std::string path;    // 1..4096 bytes, as the caller names it; never opened
  std::string sha256;  // 64 lower-case hexadecimal digits
  bool operator==(const ContextFile&) const = default;
};

// What the prompt was built from. The ledger knows the current version of each name; a stale one is refused.
struct CapturedContext {
  std::string name;                     // 1..128 of [A-Za-z0-9._/-]
  std::uint64_t version = 0;            // 1..2^53-1
  std::string sha256;                   // 64 lower-case hexadecimal digits
  std::vector<ContextFile> files = {};  // at most 1000, each path once
  bool operator==(const CapturedContext&) const = default;
};

struct ApprovedCommand {
  std::string id;  // 1..64 of [a-z0-9-]
  std::vector<std::string> argv;
  bool operator==(const ApprovedCommand&) const = default;
};

struct Deadlines {
  std::chrono::milliseconds total = std::chrono::minutes(30);  // 1 ms .. 7 days; always named by a caller
  std::chrono::milliseconds grace = std::chrono::seconds(5);   // TERM to KILL; 0 .. 60 s
  // From the start of the program to the first byte of its output; 1 ms .. 7 days; none: not bounded apart.
  std::optional<std::chrono::milliseconds> first_output = {};
  // Without output of the program and without an answer of the vendor's; likewise.
  std::optional<std::chrono::milliseconds> idle = {};
  bool operator==(const Deadlines&) const = default;
};

struct Limits {
  std::uint64_t work_bytes = 2ULL << 30U;  // the work tree and everything written to it
  std::uint64_t work_inodes = 500'000;
  std::uint64_t scratch_bytes = 512ULL << 20U;  // each of HOME, /tmp and /dev/shm
  std::uint64_t scratch_inodes = 100'000;
  std::uint64_t stdout_bytes = 64ULL << 20U;
  std::uint64_t stderr_bytes = 64ULL << 20U;
  std::uint64_t line_bytes = 32ULL << 20U;   // one line of an agent's event stream
  std::uint64_t events = 100'000;            // decoded events of the agent
  std::uint64_t memory_bytes = 4ULL << 30U;  // of all programs in the box together, the storage not included
  std::uint64_t pids = 4096;                 // processes and threads in the box
  std::uint64_t requests = 500;              // to the vendor
  std::uint64_t max_tokens = 64'000;         // ceiling of max_tokens in one request
  std::uint64_t tokens = 0;                  // in and out, of all requests together; 0: not limited
  std::uint64_t cost_usd_micros = 0;         // by the price table, in millionths of a dollar; 0: not limited
  std::uint64_t parallel_requests = 32;      // at the vendor at a time
  bool operator==(const Limits&) const = default;
};

// What to do when the host's configured capacity is taken.
enum class WhenFull { queue, refuse };
const char* when_full_name(WhenFull when_full);

enum class Backend { native, docker };
const char* backend_name(Backend backend);

// Whether programs other than the agent's own can be executed in its box.
enum class Shell {
  sandboxed,  // all of the host's, in the box
  none,       // the box's root has none, and nothing written there can be executed
};
const char* shell_name(Shell shell);

enum class Vendor { none, anthropic, openai };
const char* vendor_name(Vendor vendor);
// Whose API an agent of this name works with; none for "command" and for names that nobody has.
Vendor agent_vendor(std::string_view agent);

// The plain fields; Invocation wraps them so that nobody changes them after validation.
struct InvocationFields {
  std::string attempt_id;  // 1..64 of [a-z0-9-], starting and ending with a letter or digit
  Phase phase = Phase::question;
  AgentSpec agent;
  CloneRequest clone;
  std::string prompt;  // UTF-8 without NUL; may be empty only for "command"
  std::optional<CapturedContext> context;
  std::optional<std::string> answer_schema;  // a JSON object in canonical form, at most kMaxAnswerSchemaBytes
  std::vector<ApprovedCommand> commands;     // implementation only
  Deadlines deadlines;
  Limits limits;
  Vendor egress = Vendor::none;
  std::vector<Destination> destinations;  // beside the vendor; each host and port once
  std::string model;                      // named for every agent but "command"
  Backend backend = Backend::native;
  std::optional<std::string> image;  // "sha256:" and 64 lower-case hexadecimal digits; none: the host's /usr
  Shell shell = Shell::sandboxed;
  WhenFull when_full = WhenFull::queue;
  bool operator==(const InvocationFields&) const = default;
};

class Invocation {
 public:
  const InvocationFields& operator*() const { return fields_; }
  const InvocationFields* operator->() const { return &fields_; }
  // Canonical encoding: every field, keys sorted, no white space. Equal invocations have equal bytes.
  const std::string& canonical() const { return canonical_; }
  const std::string& sha256() const { return sha256_; }  // of canonical()

 private:
  friend Result<Invocation> build_invocation(InvocationFields fields);
  Invocation(InvocationFields fields, std::string canonical, std::string sha256)
      : fields_(std::move(fields)), canonical_(std::move(canonical)), sha256_(std::move(sha256)) {}
  InvocationFields fields_;
  std::string canonical_;
  std::string sha256_;
};

// Code::usage with the JSON path ("$.deadlines.total_ms: must be ...") for whatever breaks a rule.
Result<Invocation> build_invocation(InvocationFields fields);
// Strict: unknown and duplicate keys, wrong types, absurd numbers and depth, invalid UTF-8 are errors.
Result<Invocation> decode_invocation(std::string_view json);

// A fresh attempt id: time-ordered enough to read, random enough never to collide ("20261130-3f9a2c71d0").
std::string new_attempt_id();

}  // namespace cofferdam::contract
