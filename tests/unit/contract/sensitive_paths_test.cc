#include "contract/sensitive_paths.h"

#include <gtest/gtest.h>

#include <string>

namespace cofferdam::contract {
namespace {

std::string kind_of(std::string_view path) {
  return sensitive_kind(path).value_or("");
}

TEST(SensitivePaths, NamesWhatGitReadsFromTheWorkTree) {
  EXPECT_EQ(kind_of(".gitattributes"), "attributes");
  EXPECT_EQ(kind_of("deep/below/.gitattributes"), "attributes");
  EXPECT_EQ(kind_of(".gitmodules"), "submodules");
  EXPECT_EQ(kind_of(".lfsconfig"), "git-config");
}

TEST(SensitivePaths, NamesHooksAndTheirManagers) {
  for (const char* path :
       {".githooks/pre-commit", "tools/githooks/lib/x.sh", ".husky/_/husky.sh", "lefthook.yml",
        ".pre-commit-config.yaml", "scripts/hooks/pre-push", "hooks/post-checkout", "hooks/update"}) {
    EXPECT_EQ(kind_of(path), "hook") << path;
  }
}

TEST(SensitivePaths, NamesCiAgentsAndEnvironments) {
  for (const char* path :
       {".github/workflows/ci.yml", "sub/.github/workflows/x", ".gitlab-ci.yml", ".circleci/config.yml",
        "Jenkinsfile", "ci/Jenkinsfile.nightly", "azure-pipelines-release.yml", ".buildkite/pipeline.yml",
        ".travis.yml", "docs/CODEOWNERS"}) {
    EXPECT_EQ(kind_of(path), "ci") << path;
  }
  for (const char* path :
       {".claude/settings.json", "lib/.claude/x", ".codex/config.toml", ".mcp.json", "CLAUDE.md",
        "src/AGENTS.md", ".cursor/rules/a.mdc", ".github/copilot-instructions.md"}) {
    EXPECT_EQ(kind_of(path), "agent-config") << path;
  }
  for (const char* path :
       {".vscode/tasks.json", ".vscode/settings.json", ".envrc", "app/.envrc", ".devcontainer/Dockerfile",
        ".devcontainer.json", "app.code-workspace", ".mise.local.toml", ".config/mise.toml",
        ".zed/tasks.json", ".idea/workspace.xml"}) {
    EXPECT_EQ(kind_of(path), "environment") << path;
  }
}

TEST(SensitivePaths, FoldsWhatFileSystemsFold) {
  EXPECT_EQ(kind_of(".GitAttributes"), "attributes");
  EXPECT_EQ(kind_of(".gitattributes. "), "attributes");
  EXPECT_EQ(kind_of(".GITHUB/Workflows/ci.yml"), "ci");
  EXPECT_EQ(kind_of("claude.MD"), "agent-config");
}

TEST(SensitivePaths, TakesWhatStandsInForAFolderForTheFolder) {
  EXPECT_EQ(kind_of(".husky"), "hook");
  EXPECT_EQ(kind_of(".claude"), "agent-config");
  EXPECT_TRUE(sensitive_kind(".vscode").has_value());
  EXPECT_TRUE(sensitive_kind(".github").has_value());
}

TEST(SensitivePaths, LeavesContentAlone) {
  for (const char* path : {"",
                           "/",
                           "README.md",
                           "src/main.c",
                           "Makefile",
                           "package.json",
                           ".gitignore",
                           "src/hooks/useThing.ts",
                           "hooks",
                           "src/hooks",
                           "gitattributes",
                           "x.gitattributes",
                           "my.claude/x",
                           ".github/ISSUE_TEMPLATE.md",
                           ".vscode/snippets.json",
                           "docs/agents.md.txt",
                           "claude.md.d",
                           "run/x",
                           "app/.run/x",
                           "azure",
                           ".",
                           ".."}) {
    EXPECT_EQ(kind_of(path), "") << path;
  }
}

TEST(SensitivePaths, IsTotal) {
  std::string bytes;
  for (int c = 0; c < 256; ++c) bytes.push_back(static_cast<char>(c));
  EXPECT_EQ(kind_of(bytes), "");
  EXPECT_EQ(kind_of(std::string(100000, '/')), "");
}

}  // namespace
}  // namespace cofferdam::contract
