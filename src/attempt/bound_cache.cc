#include "attempt/bound_cache.h"

#include <cstdint>

namespace cofferdam::attempt {

Result<clone::Eviction> bound_cache(const std::string& state_dir, ledger::Ledger& ledger,
                                    std::uint64_t max_bytes) {
  constexpr std::size_t kAll = INT32_MAX;
  clone::CacheBounds bounds;
  bounds.max_bytes = max_bytes;
  TRY(const std::vector<ledger::Attempt> attempts, ledger.list(kAll));
  for (const ledger::Attempt& attempt : attempts) {
    if (!attempt.finished) bounds.heads.insert(attempt.head);
  }
  return clone::evict_bases(state_dir, bounds);
}

}  // namespace cofferdam::attempt
