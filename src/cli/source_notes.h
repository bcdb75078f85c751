// What a person should know about the repository when an attempt starts from it. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "contract/json.h"

namespace cofferdam::cli {

// From the data of the event "cloned": that uncommitted files are part of it.
std::optional<std::string> base_note(const contract::Json& cloned);
// From the data of the event "source": one line each, for what is not as they may think.
std::vector<std::string> source_notes(const contract::Json& source, bool dirty_taken);

}  // namespace cofferdam::cli
