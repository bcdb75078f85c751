#include "contract/phase.h"

#include <array>

namespace cofferdam::contract {
namespace {

struct OutcomeRow {
  Outcome outcome;
  const char* name;
  int exit_code;
};

constexpr std::array<const char*, 4> kPhases{"planning", "question", "review", "implementation"};
constexpr std::array<OutcomeRow, 7> kOutcomes{{
    {Outcome::completed, "completed", 0},
    {Outcome::failed, "failed", 1},
    {Outcome::refused, "refused", 3},
    {Outcome::limit, "limit", 4},
    {Outcome::cancelled, "cancelled", 5},
    {Outcome::setup_failed, "setup-failed", 6},
    {Outcome::lost, "lost", 6},
}};

}  // namespace

const char* phase_name(Phase phase) {
  return kPhases.at(static_cast<std::size_t>(phase));
}

std::optional<Phase> phase_from_name(std::string_view name) {
  for (std::size_t i = 0; i < kPhases.size(); ++i) {
    if (name == kPhases.at(i)) return static_cast<Phase>(i);
  }
  return std::nullopt;
}

bool is_read_only(Phase phase) {
  return phase != Phase::implementation;
}

const char* outcome_name(Outcome outcome) {
  return kOutcomes.at(static_cast<std::size_t>(outcome)).name;
}

std::optional<Outcome> outcome_from_name(std::string_view name) {
  for (const OutcomeRow& row : kOutcomes) {
    if (name == row.name) return row.outcome;
  }
  return std::nullopt;
}

int exit_code(Outcome outcome) {
  return kOutcomes.at(static_cast<std::size_t>(outcome)).exit_code;
}

}  // namespace cofferdam::contract
