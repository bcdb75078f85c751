// prune: what is old goes, folder and record; what would lose work stays, and is said.
#include <fmt/core.h>

#include <algorithm>
#include <cstdint>

#include "attempt/bound_cache.h"
#include "cli/attempt_folder.h"
#include "cli/host.h"
#include "cli/records.h"
#include "cli/retention.h"
#include "cli/verbs.h"
#include "clone/cache.h"
#include "image/store.h"

namespace cofferdam::cli {
namespace {

constexpr std::size_t kAll = INT32_MAX;

// The folder first: after a crash in between the attempt is a discarded one, and the next prune ends it. The
// other way round nobody would know whose folder it is.
Result<std::uint64_t> prune_one(Records& records, const std::string& id, const PruneOptions& options) {
  TRY(const std::optional<ledger::AttemptRecord> record, records.ledger.find(id));
  if (!record || !record->result) return make_error(Code::conflict, "it has no result");
  TRY(const ledger::ChainReport report, records.ledger.verify(id));
  if (!report.intact) {
    return make_error(Code::protocol, "its record does not hold: " + report.problem,
                      fmt::format("`cofferdam verify {}`", id));
  }
  TRY(std::optional<AttemptFolder> folder, AttemptFolder::open(records.state_dir, id));
  if (folder && !options.force) {
    TRY(const std::string lost, unpublished_work(records.ledger, *record, folder->has_store()));
    if (!lost.empty()) return make_error(Code::conflict, lost, "--force, or discard it");
  }
  const std::uint64_t bytes = folder ? folder->bytes() : 0;
  if (options.dry_run) return bytes;
  if (folder) TRY_VOID(folder->remove());
  TRY(const ledger::Tombstone left, records.ledger.prune(id));
  return bytes;
}

Status evict(Records& records, const contract::Config& config, PruneReport* report) {
  TRY(const clone::Eviction eviction,
      attempt::bound_cache(records.state_dir, records.ledger, config.cache_max_bytes));
  for (const clone::BaseEntry& one : eviction.removed) {
    report->evicted.push_back({one.head, one.repository, one.bytes});
  }
  return {};
}

Status prune(Records& records, const PruneOptions& options, std::chrono::milliseconds age,
             const contract::Config& config, PruneReport* report) {
  TRY(const std::vector<ledger::Attempt> attempts, records.ledger.list(kAll));
  report->counts = plan_prune(attempts, Timestamp{now().ms - age.count()}, options.keep);
  for (const ledger::Attempt& attempt : report->counts.old) {
    auto bytes = prune_one(records, attempt.id, options);
    if (bytes) {
      report->pruned.push_back(attempt.id);
      report->folder_bytes += *bytes;
    } else {
      report->kept.push_back({attempt.id, bytes.error().line()});
    }
  }
  if (options.dry_run) return {};
  TRY_VOID(remove_folder_leftovers(records.state_dir));
  TRY_VOID(image::remove_image_leftovers(records.state_dir));
  return evict(records, config, report);
}

}  // namespace

Result<int> prune_verb(const PruneOptions& options) {
  TRY(const contract::Config config, load_config(read_environment(), options.config));
  TRY(const std::chrono::milliseconds age, parse_age(options.older_than));
  PruneReport report;
  report.dry_run = options.dry_run;
  TRY(std::optional<Records> records, open_records());
  if (records) TRY_VOID(prune(*records, options, age, config, &report));
  TRY_VOID(print_out(options.json ? prune_json(report) : prune_text(report)));
  return 0;
}

}  // namespace cofferdam::cli
