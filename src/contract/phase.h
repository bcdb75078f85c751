// Phases and outcomes: the closed sets that every other part speaks in (design: what an attempt is for, and
// what can become of it).
#pragma once

#include <optional>
#include <string_view>

namespace cofferdam::contract {

enum class Phase { planning, question, review, implementation };
const char* phase_name(Phase phase);  // "planning", ...
std::optional<Phase> phase_from_name(std::string_view name);
// Everything but implementation: the work tree is read-only and no command can be granted.
bool is_read_only(Phase phase);

enum class Outcome { completed, failed, refused, limit, cancelled, setup_failed, lost };
const char* outcome_name(Outcome outcome);  // "completed", ..., "setup-failed", "lost"
std::optional<Outcome> outcome_from_name(std::string_view name);
// 0 completed, 1 failed, 3 refused, 4 limit, 5 cancelled, 6 setup-failed and lost. (2 is a usage error.)
int exit_code(Outcome outcome);

}  // namespace cofferdam::contract
