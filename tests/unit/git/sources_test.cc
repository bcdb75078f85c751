// Every kind of repository: found as git finds it, packed exactly, and only read.
#include <gtest/gtest.h>
#include <unistd.h>

#include <future>
#include <ostream>

#include "base/fd.h"
#include "base/text.h"
#include "clone/clone.h"
#include "support/world.h"
#include "unit/handoff/lab.h"

namespace {

using cofferdam::Code;
using cofferdam::clone::clone_head;
using cofferdam::clone::Cloned;
using cofferdam::clone::find_clone;
using cofferdam::clone::open_source;
using cofferdam::clone::resolve_commit;
using cofferdam::clone::Source;
using cofferdam::contract::CloneRequest;
using cofferdam::contract::History;
using lab::Lab;
using lab::must;

struct Kind {
  const char* name;
  const char* make;  // in the lab's folder, beside "source", which has two commits
  const char* open;  // what the user names
  const char* git_dir;
  const char* work_tree;
  const char* kind;
};

void PrintTo(const Kind& kind, std::ostream* out) {
  *out << kind.name;
}

// attacks.md A10, A12, A15, A16
constexpr Kind kKinds[] = {
    {"ordinary", "true", "source", "source/.git", "source", "work-tree"},
    {"folder_below", "true", "source/d/deep", "source/.git", "source", "work-tree"},
    {"empty_git_folder_below", "mkdir -p source/d/deep/.git", "source/d/deep", "source/.git", "source",
     "work-tree"},
    {"git_directory", "true", "source/.git", "source/.git", "", "work-tree"},
    {"bare", "git clone -q --bare source bare.git", "bare.git", "bare.git", "", "bare"},
    {"linked", "git -C source worktree add -q -b other ../linked HEAD", "linked", "source/.git", "linked",
     "linked-work-tree"},
    {"linked_of_bare",
     "git clone -q --bare source bare.git; git -C bare.git worktree add -q -b o ../linked main", "linked/d",
     "bare.git", "linked", "linked-work-tree"},
    {"git_dir_of_linked", "git -C source worktree add -q -b other ../linked HEAD",
     "source/.git/worktrees/linked", "source/.git", "", "linked-work-tree"},
    {"git_dir_elsewhere", "mkdir kept; git clone -q --separate-git-dir=kept/elsewhere source apart", "apart",
     "kept/elsewhere", "apart", "work-tree"},
    {"symlinked_git", "mkdir moved; cp -r source/.git real.git; ln -s ../real.git moved/.git", "moved",
     "real.git", "moved", "work-tree"},
    {"symlinked_folder", "ln -s source/d shortcut", "shortcut", "source/.git", "source", "work-tree"},
    {"submodule",
     "git init -q super; git -C super -c protocol.file.allow=always submodule --quiet add $LAB/source sub",
     "super/sub", "super/.git/modules/sub", "super/sub", "submodule"},
    {"alternates", "git clone -q --shared source borrower", "borrower", "borrower/.git", "borrower",
     "work-tree"},
    {"packed", "git -C source gc -q", "source", "source/.git", "source", "work-tree"},
    {"sparse",
     "git clone -q --no-checkout source sparse; git -C sparse sparse-checkout set d/deep; git -C sparse "
     "checkout -q main",
     "sparse", "sparse/.git", "sparse", "work-tree"},
    {"detached", "git -C source checkout -q --detach HEAD~", "source", "source/.git", "source", "work-tree"},
    {"work_tree_configured_elsewhere", "mkdir far; git -C source config core.worktree $LAB/far", "source",
     "source/.git", "source", "work-tree"},
};

class Kinds : public testing::TestWithParam<Kind> {
 protected:
  static constexpr const char* kSource =
      "printf one > a.txt; mkdir -p d/deep; printf two > d/b.txt; printf 3 > d/deep/c.txt; git add -A;"
      "git commit -qm 0; printf three > a.txt";
};

// Names and contents below a folder.
constexpr const char* kListing =
    "find . \\( -type f -o -type l \\) -printf '%P %l ' -exec sha256sum {} \\; | sort";

std::string objects_of(const Lab& lab, const Cloned& cloned) {
  std::string script = "(";
  for (const std::string& pack : cloned.packs.packs) {
    script.append("git show-index < ").append(cofferdam::contract::index_of(pack)).append(";");
  }
  return lab.sh(lab.at("."), script + ") | cut -d' ' -f2 | sort -u");
}

CloneRequest request_for(const Source& source) {
  CloneRequest request;
  request.head = must(resolve_commit(source));
  return request;
}

TEST_P(Kinds, IsFoundPackedAndLeftAsItWas) {
  const Kind& kind = GetParam();
  Lab lab;
  lab.make_source(kSource);
  lab.sh(lab.at("."), kind.make);
  lab.sh(lab.at("source"), "printf stashed > a.txt; git stash -q 2>/dev/null || true");
  const std::string before = lab.sh(lab.at("."), kListing);
  const Source source = must(open_source(lab.at(kind.open)));
  EXPECT_EQ(source.git_dir, lab.at(kind.git_dir));
  EXPECT_EQ(source.work_tree, *kind.work_tree == '\0' ? "" : lab.at(kind.work_tree));
  EXPECT_EQ(source.kind, kind.kind);
  const CloneRequest request = request_for(source);
  EXPECT_EQ(request.head, lab.sh(lab.at(kind.open), "git rev-parse HEAD"));
  EXPECT_EQ(lab.sh(lab.at("."), kListing), before);
  const Cloned cloned = must(clone_head(source, request, lab.at("vault")));
  EXPECT_EQ(objects_of(lab, cloned),
            lab.sh(lab.at(kind.open), "git rev-list --objects --no-object-names HEAD | sort"));
  EXPECT_EQ(cloned.identity.repository, source.git_dir);
  EXPECT_EQ(lab.sh(lab.at("vault"), "find . -name alternates"), "") << "a base borrows from nobody";
  lab.sh(lab.at("."), "rm -r vault");
  EXPECT_EQ(lab.sh(lab.at("."), kListing), before);
}

INSTANTIATE_TEST_SUITE_P(All, Kinds, testing::ValuesIn(kKinds),
                         [](const auto& tested) { return std::string(tested.param.name); });

TEST(Sources, Sha256) {
  Lab lab;
  lab.make_source("printf one > a.txt", "sha256");
  const Source source = must(open_source(lab.at("source")));
  EXPECT_EQ(source.object_format, "sha256");
  const Cloned cloned = must(clone_head(source, request_for(source), lab.at("vault")));
  EXPECT_EQ(cloned.identity.head.size(), 64U);
  EXPECT_EQ(
      lab.sh(lab.at("."), "git --git-dir=" + cloned.packs.objects_dir + "/.. fsck --full --no-dangling"), "");
}

// A shallow clone is taken as far as it goes, and what its boundary is goes with the packs.
TEST(Sources, ShallowCloneIsTakenAsFarAsItGoes) {
  Lab lab;
  lab.make_source(
      "printf 1 > a; git add -A; git commit -qm 1; printf 2 > a; git add -A; git commit -qm 2; printf 3 > a");
  lab.sh(lab.at("."), "git clone -q --depth 2 file://$PWD/source part");
  const Source source = must(open_source(lab.at("part")));
  EXPECT_TRUE(source.shallow);
  CloneRequest request = request_for(source);
  const Cloned cloned = must(clone_head(source, request, lab.at("vault")));
  EXPECT_EQ(cloned.packs.shallow, std::vector<std::string>{lab.sh(lab.at("source"), "git rev-parse HEAD~1")});
  const std::string base = cloned.packs.objects_dir + "/..";
  EXPECT_EQ(lab.sh(lab.at("."), "git --git-dir=" + base + " rev-list --count " + request.head), "2");
  EXPECT_EQ(lab.sh(lab.at("."), "git --git-dir=" + base + " fsck --full --no-dangling"), "");
  // Found again by an identity alone, as a recovery does.
  EXPECT_EQ(must(find_clone(cloned.identity, lab.at("vault"))).packs.shallow, cloned.packs.shallow);
  // A boundary that the head does not reach is none of its own.
  lab.sh(lab.at("part"),
         "git fetch -q --unshallow; git fetch -q --depth 1 file://$LAB/source HEAD; "
         "git checkout -q --orphan alone; git commit -qm alone");
  const Source again = must(open_source(lab.at("part")));
  EXPECT_TRUE(again.shallow) << "the control";
  EXPECT_TRUE(must(clone_head(again, request_for(again), lab.at("vault"))).packs.shallow.empty());
  // The same head with all its history is another base.
  const Source whole = must(open_source(lab.at("source")));
  EXPECT_TRUE(must(clone_head(whole, request, lab.at("vault"))).packs.shallow.empty());
}

// Partial clones: refused while objects of the head are missing, with a command that makes it right.
TEST(Sources, PartialCloneNamesTheCommandThatHelps) {
  for (const char* how : {"--filter=blob:none --no-checkout", "--filter=tree:0 --no-checkout"}) {
    SCOPED_TRACE(how);
    Lab lab;
    lab.make_source("printf 1 > a; git add -A; git commit -qm 1; printf 2 > a");
    lab.sh(lab.at("source"),
           "git config uploadpack.allowFilter true; git config uploadpack.allowAnySHA1InWant true");
    lab.sh(lab.at("."), std::string("git clone -q ") + how + " file://$PWD/source part");
    lab.sh(lab.at("part"),
           "git config gc.auto 0; git config maintenance.auto false");  // nothing stays behind
    const Source source = must(open_source(lab.at("part")));
    EXPECT_TRUE(source.partial);
    const CloneRequest request = request_for(source);
    auto cloned = clone_head(source, request, lab.at("vault"));
    ASSERT_FALSE(cloned);
    EXPECT_EQ(cloned.error().code, Code::not_found) << cloned.error().line();
    EXPECT_EQ(lab.sh(lab.at("."), "find vault -name '.new-*' -o -name '*.pack' 2>/dev/null || true"), "");
    const std::string hint = cloned.error().hint;
    const std::size_t at = hint.find("git -C ");
    ASSERT_NE(at, std::string::npos) << hint;
    lab.sh(lab.at("."), hint.substr(at, hint.find(';') - at));
    must(clone_head(source, request, lab.at("vault")));
  }
}

TEST(Sources, PartialCloneWithoutItsHistoryWorksWithHistoryNone) {
  Lab lab;
  lab.make_source("printf 1 > a; git add -A; git commit -qm 1; printf 2 > a");
  lab.sh(lab.at("source"),
         "git config uploadpack.allowFilter true; git config uploadpack.allowAnySHA1InWant true");
  lab.sh(lab.at("."), "git clone -q --filter=blob:none file://$PWD/source part");  // with a checkout
  const Source source = must(open_source(lab.at("part")));
  CloneRequest request = request_for(source);
  EXPECT_FALSE(clone_head(source, request, lab.at("vault"))) << "the control";
  request.history = History::none;
  must(clone_head(source, request, lab.at("vault")));
}

TEST(Sources, HistoryNoneIsTheCommitAndItsTree) {
  Lab lab;
  lab.make_source("printf 1 > a; git add -A; git commit -qm 1; printf 2 > a");
  const Source source = must(open_source(lab.at("source")));
  CloneRequest request = request_for(source);
  const Cloned full = must(clone_head(source, request, lab.at("vault")));
  request.history = History::none;
  const Cloned none = must(clone_head(source, request, lab.at("vault")));
  EXPECT_EQ(none.packs.shallow, std::vector<std::string>{request.head});
  EXPECT_EQ(objects_of(lab, none),
            lab.sh(lab.at("source"),
                   "(git rev-parse HEAD; git rev-list --objects --no-object-names HEAD^{tree}) | sort"));
  EXPECT_NE(objects_of(lab, none), objects_of(lab, full)) << "the control";
  EXPECT_NE(none.packs.objects_dir, full.packs.objects_dir);
  EXPECT_EQ(must(find_clone(none.identity, lab.at("vault"))).packs.objects_dir, none.packs.objects_dir);
  // A store on it commits and diffs without looking for parents.
  must(cofferdam::make_dirs(lab.at("attempts")));
  const auto store =
      must(cofferdam::handoff::AttemptStore::create(lab.at("attempts/a"), none.identity, none.packs));
  EXPECT_EQ(lab.sh(lab.at("attempts/a"), "git --git-dir=. rev-list --count " + request.head), "1");
  EXPECT_EQ(lab.sh(lab.at("attempts/a"), "git --git-dir=. fsck --full --no-dangling"), "");
  lab.sh(lab.at("attempts/a"), "rm shallow");
  EXPECT_THROW(lab.sh(lab.at("attempts/a"), "git --git-dir=. rev-list " + request.head + " 2>&1"),
               std::runtime_error)
      << "the control";
}

// A later head takes its ancestor's packs over and adds one; at some number everything is packed anew.
TEST(Sources, LaterHeadsAddOnePackToTheirAncestors) {
  Lab lab;
  lab.make_source("printf 0 > a");
  const Source source = must(open_source(lab.at("source")));
  std::size_t most = 0;
  bool anew = false;
  for (int round = 0; round < 10; ++round) {
    const Cloned cloned = must(clone_head(source, request_for(source), lab.at("vault")));
    const std::size_t packs = cloned.packs.packs.size();
    EXPECT_LE(packs, 8U);
    anew = anew || packs < most;
    most = std::max(most, packs);
    EXPECT_EQ(objects_of(lab, cloned),
              lab.sh(lab.at("source"), "git rev-list --objects --no-object-names HEAD | sort"));
    EXPECT_EQ(
        lab.sh(lab.at("."), "git --git-dir=" + cloned.packs.objects_dir + "/.. fsck --full --no-dangling"),
        "");
    lab.sh(lab.at("source"), "printf " + std::to_string(round) + " > b; git add -A; git commit -qm more");
  }
  EXPECT_EQ(most, 8U);
  EXPECT_TRUE(anew);
}

// attacks.md G3: what a cached head has and another does not reach is not lent to it.
TEST(Sources, AnotherBranchIsNoAncestor) {
  Lab lab;
  lab.make_source("printf 0 > a");
  lab.sh(lab.at("source"), "git checkout -q -b secret; printf s > secret; git add -A; git commit -qm secret");
  const Source source = must(open_source(lab.at("source")));
  must(clone_head(source, request_for(source), lab.at("vault")));
  lab.sh(lab.at("source"), "git checkout -q main; printf 1 > a; git commit -qam 1");
  const Cloned main = must(clone_head(source, request_for(source), lab.at("vault")));
  EXPECT_EQ(main.packs.packs.size(), 1U);
  EXPECT_EQ(objects_of(lab, main),
            lab.sh(lab.at("source"), "git rev-list --objects --no-object-names HEAD | sort"));
  // The control: a merge makes it one.
  lab.sh(lab.at("source"), "git merge -q -m merge secret");
  EXPECT_GT(must(clone_head(source, request_for(source), lab.at("vault"))).packs.packs.size(), 1U);
}

// attacks.md A17, A19: what the host's git removes or repacks is in the vault, and one that is evicted takes
// nothing from another.
TEST(Sources, HostMaintenanceAndEvictionHarmNoBase) {
  Lab lab;
  lab.make_source("printf 0 > a");
  const Source source = must(open_source(lab.at("source")));
  const Cloned first = must(clone_head(source, request_for(source), lab.at("vault")));
  lab.sh(lab.at("source"), "printf 1 > a; git commit -qam 1");
  const Cloned second = must(clone_head(source, request_for(source), lab.at("vault")));
  EXPECT_EQ(second.packs.packs.size(), 2U);
  const std::string gone = second.identity.head;
  lab.sh(lab.at("source"),
         "git reset -q --hard HEAD~; git reflog expire --expire=now --all; git gc -q --prune=now");
  EXPECT_THROW(lab.sh(lab.at("source"), "git cat-file -e " + gone), std::runtime_error) << "the control";
  lab.sh(lab.at("."), "rm -r " + first.packs.objects_dir);
  EXPECT_EQ(
      lab.sh(lab.at("."), "git --git-dir=" + second.packs.objects_dir + "/.. fsck --full --no-dangling"), "");
  EXPECT_EQ(lab.sh(lab.at("."), "git --git-dir=" + second.packs.objects_dir + "/.. rev-list --count " + gone),
            "2");
}

// isolation.md D 76: forged parents and replaced objects change nothing.
TEST(Sources, GraftsAndReplacementsDoNotCount) {
  Lab lab;
  lab.make_source("printf 1 > a; git add -A; git commit -qm 1; printf 2 > a");
  const std::string real = lab.sh(lab.at("source"), "git rev-list --objects --no-object-names HEAD | sort");
  lab.sh(lab.at("source"),
         "git rev-parse HEAD > .git/info/grafts; printf r > r; "
         "git replace HEAD:a $(git hash-object -w r)");
  EXPECT_NE(lab.sh(lab.at("source"), "git rev-list --objects --no-object-names HEAD 2>/dev/null | sort"),
            real)
      << "the control";
  const Source source = must(open_source(lab.at("source")));
  EXPECT_EQ(objects_of(lab, must(clone_head(source, request_for(source), lab.at("vault")))), real);
}

TEST(Sources, ReftablesAreRefusedWithTheWayOut) {
  Lab lab;
  lab.make_source("true");
  lab.sh(lab.at("source"),
         "git config core.repositoryFormatVersion 1; git config extensions.refStorage reftable");
  auto source = open_source(lab.at("source"));
  ASSERT_FALSE(source);
  EXPECT_EQ(source.error().code, Code::usage);
  EXPECT_NE(source.error().line().find("reftable"), std::string::npos) << source.error().line();
  EXPECT_NE(source.error().hint.find("git refs migrate"), std::string::npos);
}

TEST(Sources, NamesThatCollideOrAreOddStayWhatTheyAre) {
  Lab lab;
  lab.make_source("printf 1 > README; printf 2 > readme; printf 3 > 'ü x'; printf 4 > \"$(printf 'a\\tb')\"");
  lab.prepare();
  EXPECT_EQ(lab.sh(lab.at("work"), "cat README readme 'ü x' \"$(printf 'a\\tb')\""), "1234");
}

// Gitlinks and files under LFS are counted in the tree, whatever the repository configures.
TEST(Sources, CountsGitlinksAndLfsFiles) {
  Lab lab;
  lab.make_source(
      "printf '*.bin filter=lfs diff=lfs\\n' > .gitattributes; printf p > x.bin; mkdir d; printf p > d/y.bin;"
      "printf '*.bin -filter\\n' > d/.gitattributes; printf t > t.txt;"
      "git update-index --add --cacheinfo 160000,1234567890123456789012345678901234567890,sub");
  const Source source = must(open_source(lab.at("source")));
  const Cloned cloned = must(clone_head(source, request_for(source), lab.at("vault")));
  for (int times = 0; times < 2; ++times) {  // counted, then read
    const auto facts = must(source_facts(source, cloned.identity, cloned.packs));
    EXPECT_EQ(facts.submodules, 0U) << "git add -A took the gitlink of an absent folder out again";
    EXPECT_EQ(facts.lfs_files, 1U);
    EXPECT_EQ(facts.kind, "work-tree");
  }
  lab.sh(lab.at("source"),
         "git update-index --add --cacheinfo 160000,1234567890123456789012345678901234567890,sub;"
         "git commit -qm link");
  const Cloned linked = must(clone_head(source, request_for(source), lab.at("vault")));
  EXPECT_EQ(must(source_facts(source, linked.identity, linked.packs)).submodules, 1U);
}

// A FIFO as the HEAD of an untracked repository holds git up as long as nobody writes to it.
TEST(Sources, ALookThatHangsCanBeBrokenOff) {
  Lab lab;
  lab.make_source("printf t > t.txt");
  Source source = must(open_source(lab.at("source")));
  const Cloned cloned = must(clone_head(source, request_for(source), lab.at("vault")));
  EXPECT_TRUE(source_facts(source, cloned.identity, cloned.packs)) << "the control: without the FIFO it ends";
  lab.sh(lab.at("source"), "mkdir -p n/.git/objects n/.git/refs; mkfifo n/.git/HEAD");
  cofferdam::Pipe stop = must(cofferdam::make_pipe());
  source.stop_fd = stop.read.get();
  auto looking =
      std::async(std::launch::async, [&] { return source_facts(source, cloned.identity, cloned.packs); });
  // Until git waits in open(2) for somebody who writes: fifo(7).
  const std::string waits =
      "for try in $(seq 300); do for p in $(pgrep -f -- 'ls-files --others'); do grep -qs " +
      lab.at("source") +
      " /proc/$p/environ /proc/$p/cmdline &&"
      " grep -s -e partner -e fifo /proc/$p/wchan && exit; done; sleep 0.1; done";
  EXPECT_NE(lab.sh(lab.at("."), waits), "");
  stop.write.reset();
  const auto facts = looking.get();
  ASSERT_FALSE(facts);
  EXPECT_EQ(facts.error().code, Code::conflict);
}

// attacks.md G13: root on another user's repository, of which git itself is wary.
TEST(Sources, AnotherUsersRepositoryIsReadAsItsOwner) {
  if (::geteuid() != 0) {
    return cofferdam::test::skip_or_fail("root", "the repository must belong to another user");
  }
  Lab lab;
  lab.make_source("printf 1 > a");
  lab.sh(lab.at("."), "chown -R 12345:12345 source");
  EXPECT_THROW(lab.sh(lab.at("source"), "git status 2>&1"), std::runtime_error) << "the control";
  const Source source = must(open_source(lab.at("source")));
  ASSERT_TRUE(source.run_as.has_value());
  EXPECT_EQ(source.run_as->uid, 12345U);
  must(clone_head(source, request_for(source), lab.at("vault")));
  // A `.git` of one user's that leads to another's is not followed for root.
  lab.sh(lab.at("."),
         "mkdir lure; printf 'gitdir: %s\\n' $LAB/source/.git > lure/.git; chown -R 12346:12346 lure");
  auto lured = open_source(lab.at("lure"));
  ASSERT_FALSE(lured);
  EXPECT_EQ(lured.error().code, Code::denied) << lured.error().line();
  lab.sh(lab.at("."), "chown -R 12345:12345 lure");
  EXPECT_EQ(must(open_source(lab.at("lure"))).git_dir, source.git_dir) << "the control";
  // What only root may read is not found for anybody else.
  lab.sh(lab.at("."),
         "cp -r source secret; chown -R 0:0 secret; chmod 700 secret;"
         "printf 'gitdir: %s\\n' $LAB/secret/.git > lure/.git");
  EXPECT_FALSE(open_source(lab.at("lure")));
}

}  // namespace
