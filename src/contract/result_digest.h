// A result's own digest. It stands in the event `finished`, so the hash chain covers the result as well.
#pragma once

#include <string>

#include "contract/result.h"

namespace cofferdam::contract {

// SHA-256 of the canonical line with an empty chain_head: the chain's head follows from that event.
std::string result_digest(ResultRecord result);

}  // namespace cofferdam::contract
