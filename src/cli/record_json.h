// What `diff` and `cancel` print: as JSON, and the patch for whoever reads it.
#pragma once

#include <string>
#include <string_view>

#include "contract/result.h"

namespace cofferdam::cli {

// One line. The patch stands in it as it is when it is UTF-8 without NUL; otherwise U+FFFD is in the place of
// what JSON cannot hold. Nothing is cut.
std::string diff_json(const contract::ResultRecord& result, std::string_view patch);
// One line: the supervisor has taken the request.
std::string cancel_json(const std::string& attempt_id);
// Empty ids: nothing was new.
std::string checkpoint_json(const std::string& attempt_id, const std::string& commit,
                            const std::string& tree);

// A patch must keep its bytes; a terminal must not be given them.
std::string diff_text(const std::string& patch, bool to_terminal);

}  // namespace cofferdam::cli
