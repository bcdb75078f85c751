// What the command line said, one value type per verb. No meaning yet: the verbs give it one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "contract/phase.h"

namespace cofferdam::cli {

// run, plan, ask, review
struct RunOptions {
  contract::Phase phase = contract::Phase::implementation;
  std::string agent = "claude";
  std::string repository = ".";
  std::string base = "HEAD";
  std::string backend = "native";
  std::string egress;               // "", "none", "anthropic", "openai"
  std::string history = "full";     // or "none"
  std::string shell = "sandboxed";  // or "none"
  std::optional<std::string> attempt_id;
  std::optional<std::string> model;
  std::optional<std::string> deadline;
  std::optional<std::string> image;  // an image, or "host"
  std::optional<std::string> config;
  std::optional<std::string> prompt;  // "-": standard input
  std::vector<std::string> allowed;   // HOST[:PORT] of --allow-host
  std::vector<std::string> argv;      // what stands behind "--"
  bool json = false;
  bool capture_bodies = false;
  bool include_dirty = false;
  bool include_untracked = false;
};

struct ExecOptions {
  std::string file;  // "-": standard input
  std::optional<std::string> config;
  bool cancel_on_eof = false;
  bool capture_bodies = false;
};

struct ListOptions {
  bool json = false;
};

struct ShowOptions {
  std::string id;
  bool json = false;
};

struct DiffOptions {
  std::string id;
  bool json = false;
};

struct ApplyOptions {
  std::string id;
  std::optional<std::string> repository;  // none: the attempt's
  std::vector<std::string> accepted;      // paths of --accept
  std::optional<std::string> config;
  bool dry_run = false;
  bool json = false;
};

struct LogOptions {
  std::string id;
  bool follow = false;
  bool json = false;
};

struct VerifyOptions {
  std::optional<std::string> id;      // none: everything
  std::optional<std::string> result;  // a result record that was printed; "-": standard input
  bool json = false;
};

struct DiscardOptions {
  std::string id;
  bool force = false;
  bool json = false;
};

struct PruneOptions {
  std::string older_than = "30d";
  std::size_t keep = 0;
  std::optional<std::string> config;
  bool force = false;
  bool dry_run = false;
  bool json = false;
};

struct DfOptions {
  std::optional<std::string> config;
  bool json = false;
};

struct CancelOptions {
  std::string id;
  std::string reason;
  bool json = false;
};

struct CheckpointOptions {
  std::string id;
  std::string reason;
  bool json = false;
};

struct RecoverOptions {
  std::optional<std::string> config;
  bool json = false;
};

struct DoctorOptions {
  std::optional<std::string> config;
  bool seccomp = false;  // print the system-call filter instead
  bool json = false;
};

struct GateOptions {
  std::optional<std::string> only;  // an attack's id
  std::optional<std::string> config;
  bool list = false;
  bool json = false;
};

struct ContextOptions {
  enum class Action { set, show, list };
  Action action = Action::list;
  std::string name;
  std::uint64_t from = 0;
  std::uint64_t to = 0;
  std::optional<std::string> sha256;
  bool json = false;
};

struct ImageOptions {
  enum class Action { build, import, lock, list, verify, remove };
  Action action = Action::list;
  std::string file;               // build: the list (empty: the one that came with us); import, lock
  std::optional<std::string> id;  // verify (none: all), remove
  std::optional<std::string> config;
  bool json = false;
};

struct HostSetupOptions {
  std::string user;
  unsigned slots = 0;
  std::uint64_t bytes = 0;
  std::uint64_t inodes = 0;
  std::string dir = "/var/lib/cofferdam/slots";
  std::string cgroup = "cofferdam";
  bool remove = false;
};

struct GatewayOptions {};
struct ResolverOptions {};
struct BrokerOptions {};
struct PlaceOptions {};

using Command =
    std::variant<RunOptions, ExecOptions, ListOptions, ShowOptions, DiffOptions, ApplyOptions, LogOptions,
                 VerifyOptions, DiscardOptions, PruneOptions, DfOptions, CancelOptions, CheckpointOptions,
                 RecoverOptions, ContextOptions, DoctorOptions, GateOptions, HostSetupOptions, ImageOptions,
                 GatewayOptions, ResolverOptions, BrokerOptions, PlaceOptions>;

}  // namespace cofferdam::cli
