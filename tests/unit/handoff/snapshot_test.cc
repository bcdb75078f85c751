// The tree of the handoff against the tree of plain `git add -A` in a trusted copy that saw the same edits.
#include "handoff/snapshot.h"

#include <gtest/gtest.h>

#include "unit/handoff/lab.h"

namespace {

using lab::Lab;
using lab::must;

constexpr const char* kBase = R"(
printf 'one\n' > a.txt; printf 'two\n' > b.txt; mkdir -p dir/sub other
printf 'three\n' > dir/c.txt; printf 'four\n' > dir/sub/d.txt; printf '#!/bin/sh\n' > run.sh; chmod +x run.sh
ln -s a.txt link; printf '\000\001\377binary' > blob.bin
printf '*.log\nbuild/\n!keep.log\n' > .gitignore; printf 'kept\n' > keep.log
printf '*.crlf text eol=crlf\n*.id ident\n*.u16 text working-tree-encoding=UTF-16LE-BOM\n*.t text=auto\n' > .gitattributes
printf 'x\r\ny\r\n' > e.crlf; printf 'plain\r\nfile\r\n' > f.bin2; printf '$Id$\n' > g.id; printf 'p\r\nq\n' > h.t
printf '\377\376a\000\n\000' > i.u16
mkdir build; printf 'forced\n' > build/tracked; git add -f build/tracked; printf 'moves\n' > other/m.txt
)";

struct Edit {
  const char* name;
  const char* script;
  std::size_t findings = 0;
};

constexpr Edit kEdits[] = {
    {"nothing", "true"},
    {"create", "printf new > n.txt; mkdir -p deep/er; printf x > deep/er/x"},
    {"remove", "rm a.txt; rm -r dir"},
    {"rename", "mv a.txt z.txt; mv dir moved"},
    {"chmod", "chmod +x a.txt; chmod -x run.sh"},
    {"symlinks", "rm link; ln -s /etc/shadow link; ln -s dir dirlink; ln -s missing broken"},
    {"binary", "printf '\\000\\377\\n' >> blob.bin; head -c 300000 /dev/zero > zero.bin"},
    {"empty_folders", "mkdir -p empty/inside; rm dir/sub/d.txt"},
    {"empty_file", ": > a.txt; : > new.empty"},
    {"file_to_folder", "rm a.txt; mkdir a.txt; printf x > a.txt/inner; printf y > a.txt/z"},
    {"folder_to_file", "rm -r dir; printf 'now a file' > dir"},
    {"file_to_symlink", "rm a.txt; ln -s b.txt a.txt"},
    {"symlink_to_file", "rm link; printf file > link"},
    {"folder_to_symlink", "cp -r dir copy; rm -r dir; ln -s copy dir"},
    {"symlink_to_folder", "rm link; mkdir link; printf x > link/x"},
    {"swap", "mv a.txt t; mv b.txt a.txt; mv t b.txt"},
    {"crlf",
     "printf 'x\\r\\nz\\r\\n' > e.crlf; printf 'p\\r\\n' > h.t; printf 'plain\\r\\n' > f.bin2; printf "
     "'n\\r\\n' > new.crlf"},
    {"ident", "printf '$Id: 0123 $ edited\\n' > g.id"},
    {"encoding", "printf '\\377\\376b\\000\\n\\000' > i.u16"},
    {"attributes_changed",
     "printf '*.bin2 text\\n' >> .gitattributes; printf 'plain\\r\\nmore\\r\\n' > f.bin2"},
    {"attributes_nested",
     "printf '*.txt text eol=crlf\\n' > dir/.gitattributes; printf 'a\\r\\n' > dir/c.txt"},
    {"ignored", "printf x > a.log; mkdir -p build/deep; printf x > build/out; printf x > build/deep/out"},
    {"ignored_but_tracked", "printf changed > build/tracked; printf more >> keep.log"},
    {"ignored_removed", "rm -r build"},
    {"ignore_rules_changed",
     "printf '*.txt\\n' > .gitignore; printf x > free.log; printf x > new.txt; printf y > a.txt"},
    {"ignore_nested",
     "printf '*\\n!.gitignore\\n' > other/.gitignore; printf x > other/hidden; rm other/m.txt"},
    {"filter_without_driver",
     "printf '*.txt filter=evil diff=evil\\n' >> .gitattributes; printf changed > a.txt", 1},
    {"same_size_mtime_put_back", "touch -r a.txt ref; printf 'ONE\\n' > a.txt; touch -r ref a.txt; rm ref"},
    {"odd_names",
     "printf 1 > \"$(printf 'new\\nline')\"; printf 2 > 'quo\"te'; printf 3 > ./-dash; printf 4 > '--'; "
     "printf 5 > 'sp  ace '\n"
     "printf 6 > \"$(printf 'utf\\303\\251')\"; printf 7 > \"$(printf 'bad\\377\\376')\"; printf 8 > "
     "'ta\tb'; printf 9 > '*.glob?'\n"
     "printf 10 > ':(top)magic'; printf 11 > ':!x'; printf 12 > '!neg'; printf 13 > '#hash'; printf 14 > "
     "'back\\slash'\n"
     "mkdir -- \"$(printf 'dir\\nname')\" '-d' '160000 x'; printf 15 > \"$(printf 'dir\\nname')/-f\"; printf "
     "16 "
     "> '-d/ '; printf 17 > '160000 x/y'"},
    {"odd_names_ignored",
     "printf '#*\\n\\\\#*\\n\\\\!*\\n' > .gitignore; printf x > '#a'; printf x > '!b'; printf x > 'c '"},
    {"case_twins", "printf 1 > CASE; printf 2 > case; mkdir Dir; printf 3 > Dir/C.TXT"},
    {"git_like_names",
     "printf 1 > .gitkeep; printf 2 > git; mkdir a.git .github; printf 3 > a.git/HEAD; printf 4 > "
     ".github/w.yml"},
    {"large_file", "head -c 70000000 /dev/zero > large.dat"},
    {"everything_removed", "find . -mindepth 1 -maxdepth 1 ! -name .git -exec rm -rf {} +"},
    {"many", "i=0; while [ $i -lt 600 ]; do printf $i > many.$i; i=$((i+1)); done"},
};

// One laboratory for all edits: each starts from fresh copies of the two trees. Through an overlay, what lies
// in its upper layer is the change, no more and no less.
void expect_plain_adds_tree(bool overlay) {
  Lab lab;
  lab.make_source(kBase);
  lab.prepare();
  for (const Edit& edit : kEdits) {
    SCOPED_TRACE(edit.name);
    lab.reset();
    if (!overlay) lab.edit(edit.script);
    auto snapshot = must(overlay ? lab.overlay_snapshot(edit.script) : lab.snapshot());
    const std::string expected = lab.trusted_tree();
    EXPECT_EQ(snapshot.tree, expected) << lab.sh(lab.at("trusted"), "git ls-tree -r -t " + expected);
    EXPECT_EQ(snapshot.findings.size(), edit.findings);
    // Exactly the new objects: what the trusted copy has beyond the head.
    EXPECT_EQ(std::to_string(snapshot.objects), lab.new_objects(expected));
  }
}

TEST(Snapshot, TreeEqualsPlainAddInTrustedCopy) {
  expect_plain_adds_tree(false);
}

TEST(Snapshot, TreeEqualsPlainAddThroughAnOverlay) {
  expect_plain_adds_tree(true);
}

// The empty tree is known to git and never written: an empty pack is the right one.
TEST(Snapshot, EverythingRemovedGoesAllTheWay) {
  Lab lab;
  lab.make_source(kBase);
  lab.prepare();
  lab.edit("find . -mindepth 1 -maxdepth 1 ! -name .git -exec rm -rf {} +");
  auto store = lab.make_store("a");
  const std::string commit = lab.commit_work(store);
  cofferdam::handoff::PublishInput input{lab.source.git_dir, lab.source.run_as, commit,
                                         lab.cloned.identity.head, "refs/heads/p/id"};
  must(publish(store, input));
  EXPECT_EQ(lab.sh(lab.at("source"), "git ls-tree p/id; git fsck"), "");
}

TEST(Snapshot, CountsIgnoredFilesAndKeepsTheBaseTreeWhenNothingElseChanged) {
  Lab lab;
  lab.make_source(kBase);
  lab.prepare();
  lab.edit("mkdir -p build/x; printf 1 > build/x/1; printf 2 > build/2; printf 3 > c.log");
  auto snapshot = must(lab.snapshot());
  EXPECT_EQ(snapshot.tree, lab.cloned.identity.tree);
  EXPECT_EQ(snapshot.objects, 0U);
  EXPECT_EQ(snapshot.ignored_files, 3U);
  EXPECT_FALSE(cofferdam::exists(lab.at("out/result.pack")));
}

// attacks.md G4. The control: git with stat data and core.checkStat=minimal misses the very edit.
TEST(Snapshot, FindsASameSizeEditWhoseMtimeWasPutBack) {
  Lab lab;
  lab.make_source(kBase);
  lab.prepare();
  const std::string plain = "git -c core.checkStat=minimal -c core.trustctime=false ";
  // Old enough that git does not take the entry for racily clean and hash it anyway.
  lab.sh(lab.at("trusted"), "touch -d @1600000000 a.txt; " + plain + "status >/dev/null");
  lab.edit("touch -d @1600000000 a.txt; printf 'ONE\\n' > a.txt; touch -d @1600000000 a.txt");
  EXPECT_EQ(lab.sh(lab.at("trusted"), plain + "add -A; git write-tree"), lab.cloned.identity.tree);
  auto snapshot = must(lab.snapshot());
  EXPECT_NE(snapshot.tree, lab.cloned.identity.tree);
  lab.sh(lab.at("trusted"), "rm .git/index");
  EXPECT_EQ(snapshot.tree,
            lab.sh(lab.at("trusted"), "git add -A -f build keep.log; git add -A; git write-tree"));
}

TEST(Snapshot, WorksInASha256Repository) {
  Lab lab;
  lab.make_source(kBase, "sha256");
  lab.prepare();
  EXPECT_EQ(lab.cloned.identity.head.size(), 64U);
  lab.edit("printf new > n.txt; rm -r dir");
  EXPECT_EQ(must(lab.snapshot()).tree, lab.trusted_tree());
  auto store = lab.make_store("sha256");
  EXPECT_EQ(lab.commit_work(store).size(), 64U);
}

TEST(Snapshot, IsDeterministic) {
  Lab lab;
  lab.make_source(kBase);
  lab.prepare();
  lab.edit("printf new > n.txt; mkdir p; mkfifo p/1 p/2 p/3");
  auto first = must(lab.snapshot());
  auto second = must(lab.snapshot());
  EXPECT_EQ(first.tree, second.tree);
  ASSERT_EQ(first.findings.size(), 3U);
  EXPECT_EQ(first.findings.front().path, "p/1");
  EXPECT_EQ(lab.commit_work(lab.make_store("one")), lab.commit_work(lab.make_store("two")));
}

}  // namespace
