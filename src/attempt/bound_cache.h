// Keeps the vault within the configured bound, when an attempt has ended and when the user asks for it.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "clone/cache.h"
#include "ledger/ledger.h"

namespace cofferdam::attempt {

// Evicts the base packs that no attempt needs beyond `max_bytes`, least recently used first; the same for
// cached work trees that nobody uses. Returns what was done to the packs.
Result<clone::Eviction> bound_cache(const std::string& state_dir, ledger::Ledger& ledger,
                                    std::uint64_t max_bytes);

}  // namespace cofferdam::attempt
