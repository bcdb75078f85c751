// What of the finished attempts is kept, what goes, and why: for `discard` and `prune`.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "contract/result.h"
#include "ledger/ledger.h"

namespace cofferdam::cli {

// "30d", or a duration as the configuration has it ("12h"). Code::usage otherwise.
Result<std::chrono::milliseconds> parse_age(std::string_view text);

// Why removing this attempt's folder would lose work, empty when it would not. `stored` is the result record
// as the ledger has it; a change can be published behind it.
std::string unpublished_work(const std::string& stored, const std::optional<ledger::PublicationRecord>& later,
                             bool has_store);
// The same, with what the ledger knows of the publication.
Result<std::string> unpublished_work(ledger::Ledger& ledger, const ledger::AttemptRecord& record,
                                     bool has_store);

struct PrunePlan {
  std::vector<ledger::Attempt> old;  // to be pruned, oldest first
  std::uint64_t running = 0;         // without a result: never touched
  std::uint64_t young = 0;           // ended after the bound
  std::uint64_t newest = 0;          // older, but among the newest `keep`
};
// `attempts` as Ledger::list() has them: newest first.
PrunePlan plan_prune(const std::vector<ledger::Attempt>& attempts, Timestamp before, std::size_t keep);

struct Kept {
  std::string attempt_id;
  std::string reason;
};
struct Evicted {
  std::string head;
  std::string repository;
  std::uint64_t bytes = 0;
};
// What `prune` did, or would do.
struct PruneReport {
  bool dry_run = false;
  std::vector<std::string> pruned;
  std::vector<Kept> kept;  // old enough, and kept all the same
  PrunePlan counts;
  std::vector<Evicted> evicted;  // base packs
  std::uint64_t folder_bytes = 0;
};
std::string prune_text(const PruneReport& report);
std::string prune_json(const PruneReport& report);

std::string discard_text(const std::string& id, bool removed, std::uint64_t bytes);
std::string discard_json(const std::string& id, bool removed, std::uint64_t bytes);

}  // namespace cofferdam::cli
