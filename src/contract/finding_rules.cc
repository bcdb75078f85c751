#include "contract/finding_rules.h"

namespace cofferdam::contract {

const char* finding_action_name(FindingAction action) {
  switch (action) {
    case FindingAction::dropped:
      return "dropped";
    case FindingAction::refused:
      return "refused";
    case FindingAction::reported:
      break;
  }
  return "reported";
}

const std::vector<FindingRule>& finding_rules() {
  using enum FindingAction;
  static const std::vector<FindingRule> kRules = {
      // What a commit cannot hold, or must not.
      {"nested-git", dropped, false,
       "a .git below the top: left out, what lies beside it is taken as plain files"},
      {"unsafe-name", dropped, false,
       "a name that some file system reads as .git, or git itself never takes"},
      {"special-file", dropped, false, "a device, FIFO or socket"},
      {"unreadable", dropped, false,
       "a file or folder that its own owner may not read; a tracked file stays as it was"},
      {"gitlink", reported, false,
       "a submodule: its entry stays as it was; files of the agent's at its path are dropped"},
      // What would reach over the edge of the work tree, or of the repository's own conversions.
      {"symlink-outside", refused, true, "a symbolic link that leads out of the work tree"},
      {"driver", refused, true,
       "a file under a filter driver (LFS, git-crypt): no driver runs in a box, so it would be committed "
       "unfiltered"},
      {"control-name", refused, true, "a new name with control characters or invalid UTF-8"},
      // What deserves a look.
      {"unportable-name", reported, true,
       "a new name that Windows or macOS cannot have, or reads as another one"},
      {"set-id", reported, true, "a set-user-id or set-group-id bit, which git does not carry"},
      {"hard-link", reported, true, "a file with several names: each becomes a file of its own"},
      {"attributes", reported, true, "a .gitattributes file: decides how git reads others"},
      {"submodules", reported, true, "a .gitmodules file"},
      {"git-config", reported, true, "a file that git may be told to read as configuration"},
      {"hook", reported, true, "a path where hooks are commonly kept"},
      {"ci", reported, true, "a CI service's orders"},
      {"agent-config", reported, true, "a coding agent's configuration or instructions"},
      {"environment", reported, true, "what an editor or a shell runs when the folder is opened"},
  };
  return kRules;
}

const FindingRule* find_rule(std::string_view name) {
  for (const FindingRule& rule : finding_rules()) {
    if (name == rule.name) return &rule;
  }
  return nullptr;
}

FindingAction action_of(const FindingRule& rule, const FindingChoices& choices) {
  const auto chosen = choices.find(rule.name);
  return rule.free && chosen != choices.end() ? chosen->second : rule.action;
}

}  // namespace cofferdam::contract
