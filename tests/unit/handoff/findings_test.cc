// What cannot be carried: each is a finding or a refusal, never silence and never a hang.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>

#include "unit/handoff/lab.h"

namespace {

using cofferdam::Code;
using lab::Lab;
using lab::must;

constexpr const char* kBase =
    "printf one > a.txt; mkdir d; printf two > d/b.txt; printf '*.log\\n' > .gitignore";

bool has(const cofferdam::handoff::Snapshot& snapshot, const std::string& rule, const std::string& action,
         const std::string& path) {
  return std::any_of(snapshot.findings.begin(), snapshot.findings.end(), [&](const auto& finding) {
    return finding.rule == rule && finding.action == action && finding.path == path;
  });
}

// attacks.md A1, A2, G12.
TEST(Findings, NestedRepositoryIsDroppedAndItsFilesAreTaken) {
  for (const char* commit : {"", "git -C sub add -A; git -C sub commit -q -m inner;"}) {
    Lab lab;
    lab.make_source(kBase);
    lab.prepare();
    lab.edit(std::string("mkdir -p sub/deep; git init -q sub; printf 1 > sub/x; printf 2 > sub/deep/y; "
                         "printf '*.tmp\\n' > sub/.gitignore; printf 3 > sub/z.tmp; printf 4 > sub/w.log;") +
             commit + "mkdir gitfile; printf 'gitdir: /elsewhere\\n' > gitfile/.git; printf 5 > gitfile/f");
    // The control: with the nested repository in place plain git fails, or makes a gitlink and loses the
    // files.
    EXPECT_EQ(
        lab.sh(lab.at("trusted"), "rm -r gitfile; git add -A 2>/dev/null && git ls-files sub/x || true"), "");
    lab.sh(lab.at("trusted"), "git reset -q; rm -rf sub/.git; mkdir gitfile; printf 5 > gitfile/f");
    auto snapshot = must(lab.snapshot());
    EXPECT_EQ(snapshot.tree, lab.trusted_tree());
    EXPECT_TRUE(has(snapshot, "nested-git", "dropped", "sub/.git"));
    EXPECT_TRUE(has(snapshot, "nested-git", "dropped", "gitfile/.git"));
    EXPECT_EQ(snapshot.findings.size(), 2U);
    EXPECT_EQ(snapshot.ignored_files, 2U);
  }
}

// isolation.md D 59: nothing that the nested repository configures runs.
TEST(Findings, NestedRepositoryRunsNothing) {
  Lab lab;
  lab.make_source(kBase);
  lab.prepare();
  const std::string plant =
      "git init -q sub; printf 1 > sub/x; git -C sub add -A; git -C sub commit -q -m inner;"
      "git -C sub config core.fsmonitor 'touch " +
      lab.at("scratch") +
      "/fired;false';"
      "printf '#!/bin/sh\\ntouch " +
      lab.at("scratch") +
      "/fired\\n' > sub/.git/hooks/post-index-change;"
      "chmod +x sub/.git/hooks/post-index-change";
  lab.edit(plant);
  must(lab.snapshot());
  EXPECT_FALSE(cofferdam::exists(lab.at("scratch/fired")));
  lab.sh(lab.at("trusted"), "git -C sub status >/dev/null 2>&1 || true");
  EXPECT_TRUE(cofferdam::exists(lab.at("scratch/fired"))) << "the control did not fire";
}

constexpr const char* kWithGitlink =
    "printf one > a.txt; git init -q libs/sub; printf in > libs/sub/in; git -C libs/sub add -A;"
    "git -C libs/sub commit -q -m inner; printf x > libs/y; git add -A 2>/dev/null; rm -rf libs/sub; mkdir "
    "libs/sub";

TEST(Findings, GitlinkOfTheBaseIsPreserved) {
  struct {
    const char* edit;
    const char* finding;  // "rule path", or empty
  } const cases[] = {
      {"printf new > n.txt", ""},
      {"printf new > n.txt; printf stray > libs/sub/stray", "gitlink libs/sub/stray"},
      {"printf new > n.txt; rmdir libs/sub", "gitlink libs/sub"},
      {"printf new > n.txt; rmdir libs/sub; printf f > libs/sub", "gitlink libs/sub"},
      {"printf new > n.txt; rmdir libs/sub; ln -s ../.. libs/sub", "gitlink libs/sub"},
      {"printf new > n.txt; rm -r libs; printf f > libs", "gitlink libs"},
      {"printf new > n.txt; mv libs real; ln -s real libs", "gitlink libs"},
      {"printf new > n.txt; git init -q libs/sub; git -C libs/sub commit -q --allow-empty -m other",
       "nested-git libs/sub/.git"},
  };
  Lab lab;
  lab.make_source(kWithGitlink);
  lab.prepare();
  for (const auto& one : cases) {
    SCOPED_TRACE(one.edit);
    lab.reset();
    lab.edit(one.edit);
    auto snapshot = must(lab.snapshot());
    const std::string objects =
        "GIT_OBJECT_DIRECTORY=out/objects GIT_ALTERNATE_OBJECT_DIRECTORIES=" + lab.at("metadata/objects") +
        " GIT_DIR=metadata git ";
    const std::string before =
        lab.sh(lab.at("."), objects + "ls-tree -r " + lab.cloned.identity.tree + " libs/sub");
    EXPECT_NE(before.find("160000"), std::string::npos);
    EXPECT_EQ(lab.sh(lab.at("."), objects + "ls-tree -r " + snapshot.tree + " libs/sub"), before);
    EXPECT_EQ(lab.sh(lab.at("."), objects + "cat-file -p " + snapshot.tree + ":n.txt"), "new");
    const std::string finding = one.finding;
    if (finding.empty()) {
      EXPECT_TRUE(snapshot.findings.empty());
      continue;
    }
    const bool found = std::any_of(snapshot.findings.begin(), snapshot.findings.end(),
                                   [&](const auto& f) { return f.rule + " " + f.path == finding; });
    EXPECT_TRUE(found);
  }
}

TEST(Findings, SpecialFilesAreSkipped) {
  Lab lab;
  lab.make_source(kBase);
  lab.prepare();
  lab.edit("mkfifo fifo; rm a.txt; mkfifo a.txt; printf new > n.txt");
  lab.sh(lab.at("trusted"), "rm fifo a.txt");
  if (::geteuid() == 0) lab.sh(lab.at("work"), "mknod null c 1 3; mknod d/whiteout c 0 0");
  auto snapshot = must(lab.snapshot());
  EXPECT_EQ(snapshot.tree, lab.trusted_tree());
  EXPECT_TRUE(has(snapshot, "special-file", "dropped", "fifo"));
  EXPECT_TRUE(has(snapshot, "special-file", "dropped", "a.txt"));
  if (::geteuid() == 0) {
    EXPECT_TRUE(has(snapshot, "special-file", "dropped", "d/whiteout"));
  }
}

TEST(Findings, FifoWhereGitReadsRulesIsRefusedAndNotOpened) {
  for (const char* name : {".gitignore", ".gitattributes", "d/.gitattributes"}) {
    Lab lab;
    lab.make_source(kBase);
    lab.prepare();
    lab.sh(lab.at("work"), std::string("rm -f ") + name + "; mkfifo " + name);
    auto snapshot = lab.snapshot();
    ASSERT_FALSE(snapshot);
    EXPECT_EQ(snapshot.error().code, Code::denied);
    EXPECT_NE(snapshot.error().what.find(name), std::string::npos);
  }
}

TEST(Findings, SetIdBitsAreReported) {
  Lab lab;
  lab.make_source(kBase);
  lab.prepare();
  lab.edit("printf x > tool; chmod 4755 tool; printf y > group; chmod 2644 group");
  // The lab's change of owner clears the bits: set them for the boxed user.
  auto snapshot = must(lab.snapshot());
  if (::geteuid() == 0) {
    lab.sh(lab.at("work"), "setpriv --reuid 65533 --regid 65533 --clear-groups chmod 4755 tool");
    lab.sh(lab.at("work"), "setpriv --reuid 65533 --regid 65533 --clear-groups chmod 2644 group");
    snapshot = must(lab.snapshot());
  }
  EXPECT_TRUE(has(snapshot, "set-id", "reported", "tool"));
  EXPECT_TRUE(has(snapshot, "set-id", "reported", "group"));
  EXPECT_EQ(snapshot.tree, lab.trusted_tree());
}

TEST(Findings, UnreadableFilesKeepTheirBaseAndAreReported) {
  Lab lab;
  lab.make_source("printf one > a.txt; mkdir d e; printf two > d/b.txt; printf three > e/c.txt");
  lab.prepare();
  lab.edit("printf new > n.txt");
  lab.sh(lab.at("work"), "printf changed > a.txt; printf u > u.txt; chmod 000 a.txt u.txt d");
  auto snapshot = must(lab.snapshot());
  lab.sh(lab.at("work"), "chmod 755 d");
  EXPECT_EQ(snapshot.tree, lab.trusted_tree());
  EXPECT_TRUE(has(snapshot, "unreadable", "dropped", "a.txt"));
  EXPECT_TRUE(has(snapshot, "unreadable", "dropped", "u.txt"));
  EXPECT_TRUE(has(snapshot, "unreadable", "dropped", "d"));
}

// isolation.md D 66: git's own rules decide; what they leave out is named.
TEST(Findings, AliasesOfGitAreDropped) {
  Lab lab;
  lab.make_source(kBase);
  lab.prepare();
  lab.edit("printf new > n.txt");
  lab.sh(
      lab.at("work"),
      "mkdir .GIT s s/.Git git~1; printf x > .GIT/config; printf x > s/.Git/config; printf x > git~1/config;"
      "mkdir \"$(printf '.g\\342\\200\\214it')\"; printf x > \"$(printf '.g\\342\\200\\214it')/config\";"
      "ln -s a.txt .gitmodules");
  auto snapshot = must(lab.snapshot());
  EXPECT_EQ(snapshot.tree, lab.trusted_tree());
  for (const char* path :
       {".GIT/config", "s/.Git/config", "git~1/config", ".g\xE2\x80\x8Cit/config", ".gitmodules"}) {
    EXPECT_TRUE(has(snapshot, "unsafe-name", "dropped", path)) << path;
  }
}

TEST(Findings, AreBoundedAndTheRestIsCounted) {
  Lab lab;
  lab.make_source(kBase);
  lab.prepare();
  lab.sh(lab.at("work"), "i=0; while [ $i -lt 250 ]; do mkfifo f$i; i=$((i+1)); done");
  auto snapshot = must(lab.snapshot());
  EXPECT_EQ(snapshot.findings.size(), 200U);
  EXPECT_EQ(snapshot.more_findings, 50U);
}

// isolation.md D 38, 39.
TEST(Findings, BoundsOfTheWorkTreeAreRefusals) {
  struct {
    const char* edit;
    const char* path;
  } const cases[] = {
      {"truncate -s 1T sparse", "sparse"},
      {"truncate -s 1T a.txt", "a.txt"},
      {"n=$(printf '%0100d' 0); i=0; while [ $i -lt 200 ]; do mkdir $n; cd -P $n; i=$((i+1)); done; : > f",
       "nested"},
      {"n=$(printf '%0200d' 0); i=0; while [ $i -lt 30 ]; do mkdir $n; cd -P $n; i=$((i+1)); done; : > f",
       "path"},
  };
  Lab lab;
  lab.make_source(kBase);
  lab.prepare();
  for (const auto& one : cases) {
    SCOPED_TRACE(one.edit);
    lab.reset();
    lab.sh(lab.at("work"), one.edit);
    auto snapshot = lab.snapshot();
    ASSERT_FALSE(snapshot);
    EXPECT_EQ(snapshot.error().code, Code::exhausted);
    EXPECT_NE(snapshot.error().what.find(one.path), std::string::npos) << snapshot.error().what;
  }
}

TEST(Findings, LargeFileThatIsIgnoredDoesNotMatter) {
  Lab lab;
  lab.make_source(kBase);
  lab.prepare();
  lab.sh(lab.at("work"), "truncate -s 1T core.log");
  EXPECT_EQ(must(lab.snapshot()).ignored_files, 1U);
}

// attacks.md G10. The control: with the driver configured, plain git would have stored what it makes of the
// file.
TEST(Findings, FilesUnderADriverAreNamedWhoeverSaysSo) {
  Lab lab;
  lab.make_source(
      "printf '*.psd filter=lfs diff=lfs merge=lfs -text\\n*.off -filter\\n*.on filter\\n' > .gitattributes;"
      "printf pointer > a.psd; printf x > b.txt; mkdir d; printf pointer > d/c.psd");
  lab.prepare();
  for (const bool overlay : {false, true}) {
    SCOPED_TRACE(overlay);
    const auto after = [&](const std::string& edit) {
      lab.reset();
      if (!overlay) lab.edit(edit);
      return must(overlay ? lab.overlay_snapshot(edit) : lab.snapshot());
    };
    auto changed =
        after("printf 'the real thing' > d/c.psd; printf y > b.txt; printf z > new.off; printf z > new.on");
    EXPECT_TRUE(has(changed, "driver", "reported", "d/c.psd"));
    EXPECT_EQ(changed.findings.size(), 1U);
    // The agent's own rules cannot take the name away, and can give it to others.
    auto hidden = after("rm .gitattributes; printf 'the real thing' > a.psd");
    EXPECT_TRUE(has(hidden, "driver", "reported", "a.psd"));
    auto given = after("printf 'b.txt filter=evil\\n' > d/.gitattributes; mv b.txt d/b.txt");
    EXPECT_TRUE(has(given, "driver", "reported", "d/b.txt"));
    EXPECT_TRUE(after("rm a.psd; printf q > q").findings.empty()) << "what goes is not filtered";
  }
  lab.reset();
  lab.edit("printf 'the real thing' > a.psd");
  EXPECT_EQ(lab.sh(lab.at("trusted"),
                   "git config filter.lfs.clean 'echo filtered; cat >/dev/null'; git add a.psd; git "
                   "cat-file blob :a.psd"),
            "filtered");
}

// attacks.md B10.
TEST(Findings, HardLinksAreReportedAndBecomeFilesOfTheirOwn) {
  Lab lab;
  lab.make_source(kBase);
  lab.prepare();
  lab.edit("printf shared > one; ln one two; ln one ignored.log; printf alone > three");
  auto snapshot = must(lab.snapshot());
  EXPECT_EQ(snapshot.tree, lab.trusted_tree());
  EXPECT_TRUE(has(snapshot, "hard-link", "reported", "one"));
  EXPECT_TRUE(has(snapshot, "hard-link", "reported", "two"));
  EXPECT_EQ(snapshot.findings.size(), 2U);
}

TEST(Findings, IgnoredFilesAreListed) {
  Lab lab;
  lab.make_source(kBase);
  lab.prepare();
  lab.edit(
      "printf 1 > z.log; mkdir sub; printf 2 > sub/a.log; i=0; while [ $i -lt 300 ]; do : > m$i.log; "
      "i=$((i+1)); done");
  auto snapshot = must(lab.snapshot());
  EXPECT_EQ(snapshot.ignored_files, 302U);
  EXPECT_EQ(snapshot.ignored.size(), 200U);
  EXPECT_EQ(snapshot.ignored.front(), "m0.log");
}

// New rules for reading files change no file that nobody touched. The control: hashed anew, it would be
// another one.
TEST(Findings, ChangedAttributesRewriteNothingThatWasNotTouched) {
  Lab lab;
  lab.make_source(
      "printf 'a\\r\\nb\\r\\n' > w.txt; mkdir d; printf 'c\\r\\n' > d/sub.txt; printf 'x\\n' > u.txt");
  lab.prepare();
  const std::string edit =
      "printf '* text\\n' > .gitattributes; printf 'x\\r\\ny\\r\\n' > u.txt; touch d/sub.txt";
  for (const bool overlay : {false, true}) {
    SCOPED_TRACE(overlay);
    lab.reset();
    if (!overlay) lab.edit(edit);
    const std::string tree = must(overlay ? lab.overlay_snapshot(edit) : lab.snapshot()).tree;
    const std::string with = "GIT_ALTERNATE_OBJECT_DIRECTORIES=$LAB/out/objects git ";
    EXPECT_EQ(lab.sh(lab.at("trusted"), with + "diff-tree -r --name-status HEAD " + tree),
              "A\t.gitattributes\nM\tu.txt");
    EXPECT_EQ(lab.sh(lab.at("trusted"), with + "cat-file blob " + tree + ":u.txt | tr -d '\\n'"), "xy");
  }
  lab.sh(lab.at("trusted"), "git add --renormalize .");
  EXPECT_EQ(lab.sh(lab.at("trusted"), "git diff --cached --name-only w.txt"), "w.txt");
}

// What may be refused is not pushed out by what is only reported, however many there are of it and of their
// names.
TEST(Findings, ADriverIsNamedBeforeEverythingElse) {
  Lab lab;
  lab.make_source("printf '*.bin filter=lfs\\n' > .gitattributes; printf x > a.txt");
  lab.prepare();
  lab.edit(
      "mkdir z; i=0; while [ $i -lt 250 ]; do mkfifo z/f$i; i=$((i+1)); done; printf secret > s.bin;"
      "long=$(printf '%0200d' 7); mkdir -p d/$long/$long/$long; i=0; while [ $i -lt 300 ]; do printf x > "
      "d/$long/$long/$long/$i; i=$((i+1)); done; printf secret > zz.bin");
  auto snapshot = must(lab.snapshot());
  EXPECT_TRUE(has(snapshot, "driver", "reported", "s.bin"));
  EXPECT_TRUE(has(snapshot, "driver", "reported", "zz.bin"));
  EXPECT_EQ(snapshot.findings.size(), 200U);
  EXPECT_EQ(snapshot.more_findings, 52U);
}

// A repository in the place of a tracked file, or of a gitlink, is not looked into: its HEAD is a FIFO.
TEST(Findings, ARepositoryInTheWayHoldsNothingUp) {
  Lab lab;
  lab.make_source(kWithGitlink);
  lab.prepare();
  const std::string edit =
      "rm a.txt; mkdir -p a.txt/.git/objects a.txt/.git/refs; mkfifo a.txt/.git/HEAD; printf new > a.txt/n;"
      "mkdir -p libs/sub/.git/objects libs/sub/.git/refs; mkfifo libs/sub/.git/HEAD; printf m > more.txt";
  const auto expect = [&](const cofferdam::handoff::Snapshot& snapshot) {
    EXPECT_TRUE(has(snapshot, "nested-git", "dropped", "a.txt/.git"));
    const std::string with = "GIT_ALTERNATE_OBJECT_DIRECTORIES=$LAB/out/objects git ";
    EXPECT_EQ(
        lab.sh(lab.at("trusted"), with + "diff-tree -r --name-status --no-renames HEAD " + snapshot.tree),
        "D\ta.txt\nA\ta.txt/n\nA\tmore.txt");
  };
  lab.sh(lab.at("work"), edit);
  expect(must(lab.snapshot()));
  lab.reset();
  expect(must(lab.overlay_snapshot(edit, {}, false)));
}

}  // namespace
