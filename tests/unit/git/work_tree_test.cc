// Uncommitted files: counted exactly, taken along exactly, and the repository is only read.
#include "clone/work_tree.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "support/world.h"
#include "unit/handoff/lab.h"

namespace {

using cofferdam::Code;
using cofferdam::clone::Cloned;
using cofferdam::clone::commit_work_tree;
using cofferdam::clone::count_uncommitted;
using cofferdam::clone::find_clone;
using cofferdam::clone::open_source;
using cofferdam::clone::resolve_commit;
using cofferdam::clone::Source;
using cofferdam::clone::WorkTreeCommit;
using cofferdam::clone::WorkTreeWish;
using cofferdam::contract::History;
using cofferdam::contract::SourceFacts;
using lab::Lab;
using lab::must;

class WorkTree : public testing::Test {
 protected:
  void SetUp() override {
    lab_.make_source(
        "printf 1 > same; printf 1 > edited; printf 1 > staged; printf 1 > gone; printf 1 > touched;"
        "printf '#!/bin/sh\\n' > mode; printf 1 > link; mkdir d; printf 1 > d/f; printf '*.log\\n' > "
        ".gitignore");
    // Later than the index, or git could not tell by times what has changed.
    lab_.sh(lab_.at("source"),
            "find . -path ./.git -prune -o -type f -exec touch -d @1600000000 {} +;"
            "git update-index -q --refresh");
    wish_.author_name = "Cofferdam";
    wish_.author_email = "cofferdam@localhost";
    wish_.time.ms = 1'700'000'000'000;
    wish_.attempt_id = "some-attempt";
  }
  void sh(const std::string& script) const { lab_.sh(lab_.at("source"), script); }
  Source source() const { return must(open_source(lab_.at("source"))); }
  SourceFacts count() const {
    SourceFacts facts;
    must(count_uncommitted(source(), lab_.at("vault"), &facts));
    return facts;
  }
  cofferdam::Result<std::optional<WorkTreeCommit>> take() {
    const Source source = this->source();
    wish_.head = must(resolve_commit(source));
    return commit_work_tree(source, wish_, lab_.at("vault"));
  }
  // Its base as the clone stage finds it.
  Cloned cloned(const WorkTreeCommit& made) const {
    cofferdam::contract::CloneRequest request;
    request.head = wish_.head;
    request.history = wish_.history;
    request.work_tree = made.base;
    return must(clone_head(source(), request, lab_.at("vault")));
  }
  // git on that base.
  std::string git(const Cloned& cloned, const std::string& words) const {
    return lab_.sh(lab_.at("."), "git --git-dir=" + cloned.packs.objects_dir + "/.. " + words);
  }
  static std::string all_kinds() {
    return "printf 22 > edited; printf 2 > staged; git add staged; rm gone; touch touched; chmod +x mode;"
           "rm link; ln -s same link; rm -r d; printf f > d; printf n > new; git add new; printf i > "
           "intended;"
           "git add -N intended; printf u > untracked; printf l > x.log; mkdir u; printf v > u/v";
  }

  Lab lab_;
  WorkTreeWish wish_;
};

constexpr const char* kListing =
    "find . -type f -printf '%P %m %s %T@ %U ' -exec sha256sum {} \\; | sort;"
    "find . -type l -printf '%P %l\\n' | sort";

TEST_F(WorkTree, CountsWhatDiffers) {
  EXPECT_EQ(count(), SourceFacts{});
  sh(all_kinds());
  const SourceFacts facts = count();
  // edited, staged, gone, mode, link, d/f, new, intended; touched has its old content.
  EXPECT_EQ(facts.dirty_files, 8U);
  EXPECT_EQ(facts.untracked_files, 3U) << "untracked, u/v, and the file in d's place";
}

// The same tree as plain git makes in a copy, and nothing is written beside it.
TEST_F(WorkTree, TakesTrackedFilesAlong) {
  sh(all_kinds());
  lab_.sh(lab_.at("."), "cp -a source copy");
  const std::string before = lab_.sh(lab_.at("source"), kListing);
  auto made = must(take());
  ASSERT_TRUE(made.has_value());
  EXPECT_EQ(lab_.sh(lab_.at("source"), kListing), before);
  EXPECT_EQ(made->base.tree, lab_.sh(lab_.at("copy"), "git add -u; git write-tree"));
  const Cloned base = cloned(*made);
  EXPECT_EQ(base.identity.head, wish_.head);
  EXPECT_EQ(base.identity.base, made->base.commit);
  EXPECT_EQ(base.identity.tree, made->base.tree);
  EXPECT_EQ(git(base, "rev-parse " + made->base.commit + "^"), wish_.head);
  EXPECT_EQ(git(base, "log -1 --format=%an,%ae,%at " + made->base.commit),
            "Cofferdam,cofferdam@localhost,1700000000");
  EXPECT_NE(git(base, "log -1 --format=%B " + made->base.commit).find("some-attempt"), std::string::npos);
  EXPECT_EQ(git(base, "fsck --full --no-dangling"), "");
  EXPECT_EQ(git(base, "rev-list --objects --no-object-names " + made->base.commit + " | sort"),
            git(base, "cat-file --batch-all-objects '--batch-check=%(objectname)' | sort"));
  EXPECT_EQ(must(find_clone(base.identity, lab_.at("vault"))).packs.objects_dir, base.packs.objects_dir);
  EXPECT_EQ(must(take())->base, made->base) << "made again at the same time it is the same";
}

TEST_F(WorkTree, UntrackedOnlyWhenAskedFor) {
  sh(all_kinds() +
     "; printf e > excluded; printf 'excluded\\n' >> .git/info/exclude; git init -q nested;"
     "printf n > nested/file");
  wish_.untracked = true;
  auto made = must(take());
  EXPECT_EQ(git(cloned(*made), "ls-tree -r --name-only " + made->base.commit),
            ".gitignore\nd\nedited\nintended\nlink\nmode\nnew\nsame\nstaged\ntouched\nu/v\nuntracked");
}

TEST_F(WorkTree, NothingDiffersIsNoCommit) {
  sh("touch touched; printf u > untracked");
  EXPECT_FALSE(must(take()).has_value());
}

TEST_F(WorkTree, HistoryNoneKeepsTheHeadAndItsTree) {
  sh("git commit -q --allow-empty -m later; printf 2 > edited");
  wish_.history = History::none;
  auto made = must(take());
  const Cloned base = cloned(*made);
  EXPECT_EQ(base.packs.shallow, std::vector<std::string>{wish_.head});
  EXPECT_EQ(git(base, "rev-list --count " + made->base.commit), "2");
  EXPECT_EQ(git(base, "fsck --full --no-dangling"), "");
}

TEST_F(WorkTree, WhatCannotBeTakenIsNamed) {
  const auto refused = [this](const char* says) {
    auto made = take();
    ASSERT_FALSE(made) << says;
    EXPECT_EQ(made.error().code, Code::usage);
    EXPECT_NE(made.error().line().find(says), std::string::npos) << made.error().line();
  };
  sh("printf '*.bin filter=lfs\\n' > .gitattributes; printf p > x.bin; git add -A; git commit -qm lfs;"
     "printf changed > x.bin");
  refused("x.bin");
  refused("lfs");
  sh("git add x.bin");
  EXPECT_TRUE(must(take()).has_value()) << "the control: what is staged was filtered by the user's own git";
  sh("git reset -q --hard; printf 'edited filter=own\\n' >> .git/info/attributes; printf 2 > edited");
  refused("edited");
  sh("rm .git/info/attributes");
  EXPECT_TRUE(must(take()).has_value()) << "the control";
  sh("git update-index --split-index");
  refused("split");
  sh("git update-index --no-split-index; rm .git/sharedindex.*");
  EXPECT_TRUE(must(take()).has_value()) << "the control";
  sh("git checkout -q -f -b other; printf o > same; git commit -qam o; git checkout -q main; printf m > same;"
     "git commit -qam m; git merge -q other || true");
  refused("not merged");
  lab_.sh(lab_.at("."), "git clone -q --bare source bare.git");
  const Source bare = must(open_source(lab_.at("bare.git")));
  wish_.head = must(resolve_commit(bare));
  auto made = commit_work_tree(bare, wish_, lab_.at("vault"));
  ASSERT_FALSE(made);
  EXPECT_NE(made.error().line().find("no work tree"), std::string::npos);
}

// Built-in conversions follow the tree's attributes, as git add does.
TEST_F(WorkTree, ConversionsOfGitsOwn) {
  sh("printf '*.txt eol=crlf\\n*.u16 text working-tree-encoding=UTF-16LE\\n*.id ident\\n' > .gitattributes;"
     "printf 'a\\r\\n' > a.txt; printf 'h\\0' > b.u16; printf '$Id$\\n' > c.id; git add -A; git commit -qm "
     "attributes;"
     "printf 'a\\r\\nb\\r\\n' > a.txt; printf 'h\\0i\\0' > b.u16; printf '$Id: x $\\nmore\\n' > c.id");
  lab_.sh(lab_.at("."), "cp -a source copy");
  auto made = must(take());
  EXPECT_EQ(made->base.tree, lab_.sh(lab_.at("copy"), "git add -u; git write-tree"));
  EXPECT_EQ(git(cloned(*made), "show " + made->base.commit + ":a.txt | od -c | head -1"),
            "0000000   a  \\n   b  \\n");
}

// The index of a linked work tree, and of a sparse one, is its own.
TEST_F(WorkTree, LinkedAndSparseWorkTrees) {
  sh("git worktree add -q -b other ../linked; printf main > edited; printf linked > ../linked/edited");
  const Source linked = must(open_source(lab_.at("linked")));
  wish_.head = must(resolve_commit(linked));
  auto made = must(commit_work_tree(linked, wish_, lab_.at("vault")));
  EXPECT_EQ(git(cloned(*made), "show " + made->base.commit + ":edited"), "linked");
  sh("git checkout -q -f main; git sparse-checkout set --no-cone /edited; printf sparse > edited");
  EXPECT_EQ(count().dirty_files, 1U) << "what is left out of the work tree is not removed";
  auto sparse = must(take());
  EXPECT_EQ(git(cloned(*sparse), "show " + sparse->base.commit + ":d/f"), "1");
}

TEST_F(WorkTree, GitlinksStayAsTheyAre) {
  sh("git init -q sub; cd sub; git commit -q --allow-empty -m 1; cd ..; "
     "git update-index --add --cacheinfo 160000,$(git -C sub rev-parse HEAD),sub; git commit -qm sub;"
     "git -C sub commit -q --allow-empty -m 2; printf x > sub/x");
  EXPECT_EQ(count().dirty_files, 0U);
  sh("printf 2 > edited");
  auto made = must(take());
  EXPECT_EQ(git(cloned(*made), "ls-tree " + made->base.commit + " sub"),
            lab_.sh(lab_.at("source"), "git ls-tree HEAD sub"));
}

TEST_F(WorkTree, ABaseThatIsGoneIsNotFound) {
  sh("printf 2 > edited");
  cofferdam::contract::CloneRequest request;
  {
    auto made = must(take());
    request.head = wish_.head;
    request.work_tree = made->base;
    must(clone_head(source(), request, lab_.at("vault")));  // the control
    // A tree that is not the commit's is not believed.
    auto other = request;
    other.work_tree->tree = std::string(40, '1');
    EXPECT_EQ(clone_head(source(), other, lab_.at("vault")).error().code, Code::usage);
  }
  lab_.sh(lab_.at("vault"), "rm -r */base/*-work-*");
  auto gone = clone_head(source(), request, lab_.at("vault"));
  ASSERT_FALSE(gone);
  EXPECT_EQ(gone.error().code, Code::not_found);
  EXPECT_NE(gone.error().hint.find("--include-dirty"), std::string::npos);
}

// Every git here is the owner's: what only root can read is not taken for anybody else.
TEST_F(WorkTree, FilesAreReadAsTheOwner) {
  if (::geteuid() != 0) {
    return cofferdam::test::skip_or_fail("root", "the repository must belong to another user");
  }
  sh("printf 2 > edited; chown -R 12345:12345 .");
  must(take());
  sh("printf secret > edited; chown 0:0 edited; chmod 600 edited");
  EXPECT_FALSE(take());
  sh("chmod 644 edited");
  EXPECT_TRUE(must(take()).has_value()) << "the control";
  EXPECT_EQ(lab_.sh("/tmp", "find . -maxdepth 1 -name 'cofferdam-work-tree-*' -user 12345"), "");
}

}  // namespace
