// Which of the verified changes are refused, which are reported, and that the configuration turns only what
// it may.
#include "handoff/judge.h"

#include <gtest/gtest.h>

namespace {

using cofferdam::contract::Finding;
using cofferdam::contract::FindingAction;
using cofferdam::contract::FindingChoices;
using cofferdam::handoff::Change;
using cofferdam::handoff::Collected;
using cofferdam::handoff::judge;
using cofferdam::handoff::leads_outside;
using cofferdam::handoff::unportable_because;
using cofferdam::handoff::Verdict;

Change added(const std::string& path, const std::string& mode = "100644", const std::string& id = "1") {
  return {{path, "added"}, mode, std::string(40, id[0])};
}

std::string shown(const Verdict& verdict) {
  std::string out;
  for (const Finding& one : verdict.findings) out += one.rule + " " + one.action + " " + one.path + ";";
  return out;
}

// attacks.md B7, isolation.md D 40.
TEST(Judge, LinksThatLeadOutsideAreRefused) {
  struct {
    const char* path;
    const char* target;
    bool outside;
  } const cases[] = {
      {"a", "b", false},
      {"a", "/etc/shadow", true},
      {"a", "..", true},
      {"d/a", "..", false},
      {"d/a", "../b", false},
      {"d/a", "../../b", true},
      {"d/a", "x/../../b", true},
      {"d/a", "x/../../../b", true},
      {"a", ".git/hooks", true},
      {"d/a", "../.GIT/config", true},
      {"a", "x/.git", true},
      {"a", "./b//c/.", false},
      {"a", "", true},
      {"a1/b/c/d/e/up", "../../../../..", false},
      {"a1/b/c/d/e/esc", "up/../../../../etc/passwd", true},
      {"k/up", "..", false},
      {"k/hooks", "up/.git/hooks", true},
  };
  for (const auto& one : cases) {
    EXPECT_EQ(leads_outside(one.path, one.target), one.outside) << one.path << " -> " << one.target;
    Collected collected;
    collected.changes = {added(one.path, "120000", "2")};
    collected.links[std::string(40, '2')] = one.target;
    EXPECT_EQ(judge({}, 0, collected, {}).refused, one.outside ? 1U : 0U) << one.path << " -> " << one.target;
  }
  Collected unknown;
  unknown.changes = {added("a", "120000", "3")};
  EXPECT_EQ(judge({}, 0, unknown, {}).refused, 1U) << "a target that nobody has seen";
  unknown.changes = {{{"a", "deleted"}, "000000", std::string(40, '0')}};
  EXPECT_EQ(judge({}, 0, unknown, {}).refused, 0U) << "one that goes";
}

TEST(Judge, NamesAreLookedAtWhenTheyAreNew) {
  const std::string escape = "a\x1b[31m";
  Collected collected;
  collected.changes = {added("new\nline"), added(escape),   added("bad\xff"), added("ta\tb"),
                       added("aux.txt"),   added("d/COM1"), added("x./y"),    added("q?"),
                       added("fine.txt"),  added("Twin"),   added("tWIN"),    added("con/form"),
                       added("console"),   added("com0")};
  Change old = added("old\nline");
  old.file.status = "modified";
  collected.changes.push_back(old);
  const Verdict verdict = judge({}, 0, collected, {});
  EXPECT_EQ(verdict.refused, 4U);
  EXPECT_EQ(shown(verdict),
            "control-name refused a\x1b[31m;unportable-name reported aux.txt;control-name refused bad\xff;"
            "unportable-name reported con/form;unportable-name reported d/COM1;control-name refused "
            "new\nline;unportable-name reported q?;unportable-name reported tWIN;control-name refused ta\tb;"
            "unportable-name reported x./y;");
  EXPECT_EQ(verdict.refusal.find('\x1b'), std::string::npos) << "it is shown to people";
  EXPECT_EQ(unportable_because("plain/path.txt"), "");
}

// On a host that does not tell case apart they are one file, or one folder.
TEST(Judge, ANewNameIsComparedWithWhatLiesBesideIt) {
  Collected collected;
  collected.beside = {"README.md", "Docs", "docs", "src", "src/a.c", "lib"};
  collected.changes = {added("readme.md"), added("docs/new"), added("src/A.C"), added("src/b.c"),
                       added("LIB/x"),     added("p/q"),      added("P/r")};
  EXPECT_EQ(shown(judge({}, 0, collected, {})),
            "unportable-name reported LIB/x;unportable-name reported P/r;unportable-name reported docs/new;"
            "unportable-name reported readme.md;unportable-name reported src/A.C;");
  collected.beside = {"readme.md", "docs", "src", "src/A.C", "LIB"};
  collected.changes = {added("readme.md"), added("docs/new"), added("src/A.C"), added("LIB/x")};
  EXPECT_EQ(shown(judge({}, 0, collected, {})), "") << "what has only changed its spelling has no twin";
}

// attacks.md A11, isolation.md D 77.
TEST(Judge, OrdersToProgramsAreReportedWhateverHappensToThem) {
  Collected collected;
  collected.changes = {added(".github/workflows/ci.yml"),
                       added(".claude/settings.json"),
                       added("sub/.gitattributes"),
                       {{".husky/pre-commit", "deleted"}, "000000", std::string(40, '0')},
                       added("src/plain.cc")};
  const Verdict verdict = judge({}, 0, collected, {});
  EXPECT_EQ(verdict.refused, 0U);
  EXPECT_EQ(verdict.findings.size(), 4U) << shown(verdict);
  for (const Finding& one : verdict.findings) EXPECT_EQ(one.action, "reported") << one.path;
}

TEST(Judge, TheConfigurationTurnsWhatIsFree) {
  const std::vector<Finding> noted = {{"driver", "a.psd", "reported"}, {"nested-git", "x/.git", "dropped"}};
  Collected collected;
  collected.changes = {added(".envrc")};
  EXPECT_EQ(shown(judge(noted, 0, collected, {})),
            "environment reported .envrc;driver refused a.psd;nested-git dropped x/.git;");
  const FindingChoices choices = {{"driver", FindingAction::reported},
                                  {"environment", FindingAction::refused},
                                  {"nested-git", FindingAction::reported}};
  const Verdict turned = judge(noted, 0, collected, choices);
  EXPECT_EQ(shown(turned), "environment refused .envrc;driver reported a.psd;nested-git dropped x/.git;");
  EXPECT_EQ(turned.refusal, "environment: .envrc");
}

TEST(Judge, ARefusalIsNotCrowdedOutByReports) {
  std::vector<Finding> noted;
  for (int i = 0; i < 3000; ++i) noted.push_back({"set-id", "a" + std::to_string(i), "reported"});
  noted.push_back({"driver", "zzz", "reported"});
  const Verdict verdict = judge(noted, 7, {}, {});
  EXPECT_EQ(verdict.findings.size(), cofferdam::handoff::kMaxJudgedFindings);
  EXPECT_EQ(verdict.more, 7U + 3001U - cofferdam::handoff::kMaxJudgedFindings);
  EXPECT_EQ(verdict.findings.back().path, "zzz");
  EXPECT_EQ(verdict.refusal, "driver: zzz");
}

}  // namespace
