// The two halves of the invocation's codec: the rules are in invocation.cc and hold for built ones as well.
#pragma once

#include <string>
#include <string_view>

#include "contract/invocation.h"

namespace cofferdam::contract {

// Types, keys and what fits the fields; not yet the rules.
Result<InvocationFields> parse_invocation_fields(std::string_view json);
std::string canonical_invocation(const InvocationFields& fields);

}  // namespace cofferdam::contract
