// The message of the change's commit. It is Cofferdam's: the agent's summary is quoted in it and can neither
// forge a trailer nor end the message early.
#pragma once

#include <string>
#include <string_view>

namespace cofferdam::handoff {

// Subject of at most 72 bytes from the summary's first line (or "Change by Cofferdam attempt <id>"), the rest
// of the summary as body, and the one trailer "Cofferdam-Attempt: <id>".
std::string commit_message(std::string_view summary, const std::string& attempt_id);

}  // namespace cofferdam::handoff
