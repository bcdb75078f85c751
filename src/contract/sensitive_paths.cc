#include "contract/sensitive_paths.h"

#include <algorithm>
#include <vector>

#include "base/text.h"

namespace cofferdam::contract {
namespace {

enum class Where { anywhere, root };

struct Pattern {
  const char* kind;
  // Components in lower case. One may end with "*" (any rest). A pattern that ends with "/" is a folder:
  // itself and all below it.
  const char* path;
  Where where = Where::anywhere;
};

constexpr Pattern kPatterns[] = {
    // What git itself reads from the work tree.
    {"attributes", ".gitattributes"},
    {"submodules", ".gitmodules"},
    {"git-config", ".gitconfig"},  // the usual aim of include.path
    {"git-config", ".lfsconfig"},
    // Hooks and those who call them.
    {"hook", ".githooks/"},
    {"hook", "githooks/"},
    {"hook", ".git-hooks/"},
    {"hook", "git-hooks/"},
    {"hook", ".hooks/"},
    {"hook", ".husky/"},
    {"hook", ".huskyrc*"},
    {"hook", ".lefthook/"},
    {"hook", ".lefthook*"},
    {"hook", "lefthook.*"},
    {"hook", "lefthook-local.*"},
    {"hook", ".pre-commit-config.*"},
    {"hook", ".pre-commit-hooks.*"},
    {"hook", ".overcommit.yml"},
    {"hook", ".lintstagedrc*"},
    {"hook", "lint-staged.config.*"},
    {"hook", "hooks/applypatch-msg"},
    {"hook", "hooks/commit-msg"},
    {"hook", "hooks/fsmonitor-watchman"},
    {"hook", "hooks/post-*"},
    {"hook", "hooks/pre-*"},
    {"hook", "hooks/prepare-commit-msg"},
    {"hook", "hooks/proc-receive"},
    {"hook", "hooks/push-to-checkout"},
    {"hook", "hooks/reference-transaction"},
    {"hook", "hooks/sendemail-validate"},
    {"hook", "hooks/update"},
    // CI services: they run what the branch says, with their own credentials.
    {"ci", ".github/workflows/"},
    {"ci", ".github/actions/"},
    {"ci", ".github/dependabot.*"},
    {"ci", "codeowners"},
    {"ci", ".gitlab-ci.*"},
    {"ci", ".gitlab/"},
    {"ci", ".circleci/"},
    {"ci", "jenkinsfile*"},
    {"ci", "azure-pipelines*"},
    {"ci", ".azure-pipelines/"},
    {"ci", ".buildkite/"},
    {"ci", ".travis.yml"},
    {"ci", ".drone.*"},
    {"ci", ".woodpecker.*"},
    {"ci", ".woodpecker/"},
    {"ci", ".forgejo/"},
    {"ci", ".gitea/"},
    {"ci", "bitbucket-pipelines.yml"},
    {"ci", ".cirrus.*"},
    {"ci", ".appveyor.yml"},
    {"ci", "appveyor.yml"},
    {"ci", "cloudbuild.*"},
    {"ci", ".teamcity/"},
    {"ci", ".builds/"},
    {"ci", ".build.yml", Where::root},
    // What the next agent, or one on the user's own machine, takes its orders from.
    {"agent-config", ".claude/"},
    {"agent-config", ".claude.json"},
    {"agent-config", "claude.md"},
    {"agent-config", "claude.local.md"},
    {"agent-config", ".mcp.json"},
    {"agent-config", ".codex/"},
    {"agent-config", ".agents/"},
    {"agent-config", "agents.md"},
    {"agent-config", "agents.override.md"},
    {"agent-config", "agent.md"},
    {"agent-config", ".gemini/"},
    {"agent-config", "gemini.md"},
    {"agent-config", ".cursor/"},
    {"agent-config", ".cursorrules"},
    {"agent-config", ".windsurf/"},
    {"agent-config", ".windsurfrules"},
    {"agent-config", ".clinerules*"},
    {"agent-config", ".clinerules/"},
    {"agent-config", ".roo/"},
    {"agent-config", ".roorules*"},
    {"agent-config", ".continue/"},
    {"agent-config", ".aider*"},
    {"agent-config", ".opencode/"},
    {"agent-config", "opencode.json*"},
    {"agent-config", ".kiro/"},
    {"agent-config", ".junie/"},
    {"agent-config", ".amazonq/"},
    {"agent-config", ".github/copilot-instructions.md"},
    {"agent-config", ".github/instructions/"},
    {"agent-config", ".github/prompts/"},
    {"agent-config", ".vscode/mcp.json"},
    // Editors, debuggers and shells that run something when a folder is opened.
    {"environment", ".vscode/tasks.json"},
    {"environment", ".vscode/settings.json"},
    {"environment", ".vscode/launch.json"},
    {"environment", ".vscode/extensions.json"},
    {"environment", ".zed/"},
    {"environment", ".idea/"},
    {"environment", ".run/", Where::root},
    {"environment", ".devcontainer/"},
    {"environment", ".devcontainer.json"},
    {"environment", ".gitpod.yml"},
    {"environment", ".envrc"},
    {"environment", ".mise*"},
    {"environment", "mise.*"},
    {"environment", "mise/config*"},
    {"environment", "*.code-workspace"},
    {"environment", ".mise/"},
    {"environment", ".config/mise*"},
    {"environment", ".config/mise/"},
    {"environment", ".tool-versions"},
    {"environment", ".dir-locals.el"},
    {"environment", ".exrc"},
    {"environment", ".lvimrc"},
    {"environment", ".local.vimrc"},
    {"environment", ".vimrc"},
    {"environment", ".nvimrc"},
    {"environment", ".nvim.lua"},
    {"environment", ".gdbinit"},
    {"environment", ".lldbinit"},
};

std::string folded(std::string_view component) {
  std::string out(component.substr(0, component.find_last_not_of(". ") + 1));
  std::transform(out.begin(), out.end(), out.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return out;
}

bool component_matches(std::string_view pattern, std::string_view component) {
  if (!pattern.empty() && pattern.back() == '*') {
    return starts_with(component, pattern.substr(0, pattern.size() - 1));
  }
  if (!pattern.empty() && pattern.front() == '*') return component.ends_with(pattern.substr(1));
  return pattern == component;
}

struct Parsed {
  std::string kind;
  std::vector<std::string> components;
  bool folder = false;
  Where where = Where::anywhere;
};

// Taken apart once: a change may have a hundred thousand paths.
const std::vector<Parsed>& parsed_patterns() {
  static const std::vector<Parsed> patterns = [] {
    std::vector<Parsed> all;
    for (const Pattern& pattern : kPatterns) {
      std::string_view path = pattern.path;
      const bool folder = path.back() == '/';
      if (folder) path.remove_suffix(1);
      all.push_back({pattern.kind, split(path, '/'), folder, pattern.where});
    }
    return all;
  }();
  return patterns;
}

bool matches_at(const Parsed& pattern, const std::vector<std::string>& path, std::size_t at) {
  const std::size_t rest = path.size() - at;
  if (rest > pattern.components.size() && !pattern.folder) return false;
  // With fewer components than the pattern it is the place of a folder on the way, taken by something else.
  const std::size_t both = std::min(rest, pattern.components.size());
  for (std::size_t i = 0; i < both; ++i) {
    if (!component_matches(pattern.components[i], path[at + i])) return false;
  }
  // "hooks" alone, as the name of a file, is content.
  return both == pattern.components.size() || starts_with(pattern.components.front(), ".");
}

bool matches(const Parsed& pattern, const std::vector<std::string>& path) {
  const std::size_t last = pattern.where == Where::root ? 1 : path.size();
  for (std::size_t at = 0; at < last; ++at) {
    if (matches_at(pattern, path, at)) return true;
  }
  return false;
}

}  // namespace

std::optional<std::string> sensitive_kind(std::string_view path) {
  std::vector<std::string> components;
  for (const std::string& component : split(path, '/')) components.push_back(folded(component));
  if (components.empty()) return std::nullopt;
  for (const Parsed& pattern : parsed_patterns()) {
    if (matches(pattern, components)) return pattern.kind;
  }
  return std::nullopt;
}

}  // namespace cofferdam::contract
