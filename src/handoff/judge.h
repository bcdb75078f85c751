// The verdict over a change: what of it is refused, what is reported. Pure; it sees what the collect box has
// verified, and nothing of the work tree.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "contract/finding_rules.h"
#include "contract/result.h"
#include "handoff/collect.h"

namespace cofferdam::handoff {

inline constexpr std::size_t kMaxJudgedFindings = 1000;

struct Verdict {
  std::vector<contract::Finding> findings;  // in order of path; refused ones are never left out for others
  std::uint64_t more = 0;                   // beyond these
  std::uint64_t refused = 0;                // how many
  // One line for people when something is refused: the first of it and how many there are; otherwise empty.
  std::string refusal;
};

// `noted` is what the snapshot box found, `more` what it left out.
Verdict judge(const std::vector<contract::Finding>& noted, std::uint64_t more, const Collected& collected,
              const contract::FindingChoices& choices);

// Whether a link with that text, at that path of a tree, could lead out of the tree or into a .git. Every
// ".." has to stand before the first name, and a .git nowhere: then it leads to somewhere below a folder of
// the tree, whatever other links of that kind there are on the way.
bool leads_outside(std::string_view link_path, std::string_view target);
// Why a name is not portable; empty: it is. Of one path, all components.
std::string unportable_because(std::string_view path);

}  // namespace cofferdam::handoff
