#include "attempt/bound_cache.h"

#include <optional>
#include <vector>

#include "workspace/tree_cache.h"

namespace cofferdam::attempt {

Result<clone::Eviction> bound_cache(const std::string& state_dir, ledger::Ledger& ledger,
                                    std::uint64_t max_bytes) {
  clone::CacheBounds bounds;
  bounds.max_bytes = max_bytes;
  TRY(const std::vector<std::string> ids, ledger.unfinished());
  for (const std::string& id : ids) {
    TRY(const std::optional<ledger::AttemptRecord> record, ledger.find(id));
    if (record) bounds.heads.insert(record->attempt.head);
  }
  TRY(const workspace::TreeEviction trees, workspace::evict_trees(state_dir, max_bytes));
  (void)trees;
  return clone::evict_bases(state_dir, bounds);
}

}  // namespace cofferdam::attempt
