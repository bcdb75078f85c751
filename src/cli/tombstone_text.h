// What `show` prints of an attempt that was pruned.
#pragma once

#include <string>

#include "ledger/ledger.h"

namespace cofferdam::cli {

std::string tombstone_text(const ledger::Tombstone& tombstone);
std::string tombstone_json(const ledger::Tombstone& tombstone);  // one line

}  // namespace cofferdam::cli
