// What a person should know about the repository when an attempt starts from it. Pure.
#pragma once

#include <string>
#include <vector>

#include "contract/json.h"

namespace cofferdam::cli {

// From the data of the event "cloned": one line each, for what is not as they may think.
std::vector<std::string> source_notes(const contract::Json& cloned);
// The same data without what the notes say.
contract::Json without_source_facts(contract::Json cloned);

}  // namespace cofferdam::cli
