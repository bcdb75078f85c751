#include "base/file.h"
#include "base/text.h"
#include "cli/disk_usage.h"
#include "cli/host.h"
#include "cli/verbs.h"
#include "clone/cache.h"
#include "contract/rules.h"
#include "image/store.h"
#include "ledger/ledger.h"

namespace cofferdam::cli {
namespace {

constexpr std::int64_t kNanosecondsPerMs = 1'000'000;

// The file, and what lies beside it: SQLite's own files and our locks.
Status measure_ledger(DiskUsage* usage) {
  const std::string file = ledger::ledger_path("");
  TRY(const std::vector<std::string> names, list_dir(usage->state_dir));
  for (const std::string& name : names) {
    if (!starts_with("/" + name, file)) continue;
    TRY(const std::uint64_t bytes, tree_bytes(usage->state_dir + "/" + name));
    usage->ledger_bytes += bytes;
  }
  return {};
}

Status measure_vault(DiskUsage* usage) {
  TRY(usage->vault_bytes, tree_bytes(usage->state_dir + "/vault"));
  TRY(const std::vector<clone::BaseEntry> bases, clone::list_bases(usage->state_dir));
  for (const clone::BaseEntry& base : bases) {
    usage->packs.push_back({base.head, base.repository, base.bytes,
                            Timestamp{base.last_use_ns / kNanosecondsPerMs}, base.in_use, base.borrowers});
  }
  return {};
}

Status measure_attempts(DiskUsage* usage) {
  const std::string attempts = usage->state_dir + "/attempts";
  TRY(usage->attempts_bytes, tree_bytes(attempts));
  if (!is_directory(attempts)) return {};
  TRY(const std::vector<std::string> names, list_dir(attempts));
  for (const std::string& name : names) {
    if (!contract::is_attempt_id(name)) continue;
    std::string path = attempts;
    path.append("/").append(name);
    TRY(const std::uint64_t bytes, tree_bytes(path));
    usage->folders.push_back({name, bytes});
  }
  return {};
}

Status measure_images(DiskUsage* usage) {
  TRY(usage->images_bytes, tree_bytes(usage->state_dir + "/images"));
  TRY(std::vector<image::ImageEntry> images, image::list_images(usage->state_dir));
  usage->images.reserve(images.size());
  for (image::ImageEntry& one : images) {
    usage->images.push_back({std::move(one.id), std::move(one.from), one.bytes, one.last_use, one.in_use});
  }
  return {};
}

}  // namespace

Result<int> df_verb(const DfOptions& options) {
  const Environment environment = read_environment();
  TRY(const contract::Config config, load_config(environment, options.config));
  DiskUsage usage;
  usage.max_bytes = config.cache_max_bytes;
  TRY(const std::optional<std::string> state_dir, existing_state_dir(environment));
  if (state_dir) {
    usage.state_dir = *state_dir;
    TRY_VOID(measure_ledger(&usage));
    TRY_VOID(measure_vault(&usage));
    TRY_VOID(measure_attempts(&usage));
    TRY_VOID(measure_images(&usage));
  }
  TRY_VOID(print_out(options.json ? disk_usage_json(usage) : disk_usage_text(usage, now())));
  return 0;
}

}  // namespace cofferdam::cli
