// attacks.md A7, A8, A9, A11, A20 and isolation.md D 44-60: nothing that the user's repository configures is
// run by open, clone, handoff, publication or diff. Every row has a control: plain git in the same repository
// fires it.
#include <fcntl.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <ostream>

#include "clone/work_tree.h"
#include "git/git.h"
#include "unit/handoff/lab.h"

namespace {

using lab::Lab;
using lab::must;

struct Trap {
  const char* name;
  const char* plant;    // in the source; "$MARK" is a command that leaves the mark
  const char* control;  // plain git that fires it
};

void PrintTo(const Trap& trap, std::ostream* out) {
  *out << trap.name;
}

// Every row is a repository of its own, so one mark is enough.
constexpr Trap kTraps[] = {
    {"fsmonitor", "git config core.fsmonitor \"$MARK;false\"", "git status"},
    {"fsmonitor_of_include",
     "printf '[core]\\n\\tfsmonitor = \"%s;false\"\\n' \"$MARK\" > ../included; git config include.path "
     "../../included",
     "git status"},
    {"fsmonitor_of_config_worktree",
     "git config core.repositoryFormatVersion 1; git config extensions.worktreeConfig true;"
     "git config --worktree core.fsmonitor \"$MARK;false\"",
     "git status"},
    {"fsmonitor_of_submodule",
     "git init -q sub; git -C sub commit -q --allow-empty -m s; git -C sub config core.fsmonitor "
     "\"$MARK;false\";"
     "git update-index --add --cacheinfo 160000,$(git -C sub rev-parse HEAD),sub; git commit -qm sub",
     "git status"},
    {"hooks_path", "mkdir -p hooks.d; hook hooks.d/reference-transaction; git config core.hooksPath hooks.d",
     "git update-ref refs/heads/control HEAD"},
    {"hook_reference_transaction", "hook .git/hooks/reference-transaction",
     "git update-ref refs/heads/control HEAD"},
    {"hook_post_index_change", "hook .git/hooks/post-index-change",
     "touch a.txt; git update-index --refresh"},
    {"hook_pre_commit", "hook .git/hooks/pre-commit", "git commit --allow-empty -m x"},
    {"hook_post_commit", "hook .git/hooks/post-commit", "git commit --allow-empty -m x"},
    {"hook_post_checkout", "hook .git/hooks/post-checkout", "git checkout -b x"},
    {"hook_update", "hook .git/hooks/update", "git push . HEAD:refs/heads/control"},
    {"filter_clean", "git config filter.evil.clean \"$MARK;cat\"", "printf z > a.txt; git add -A"},
    {"filter_with_an_odd_name",
     "git config 'filter.a=b.clean' \"$MARK;cat\"; printf '*.txt filter=a=b\\n' > .git/info/attributes",
     "printf z > a.txt; git add -A"},
    {"filter_process", "git config filter.evil.process \"$MARK\"", "printf z > a.txt; git add -A"},
    {"filter_smudge", "git config filter.evil.smudge \"$MARK;cat\"", "rm a.txt; git checkout -- a.txt"},
    {"textconv", "git config diff.evil.textconv \"$MARK;cat\"", "printf z > a.txt; git diff"},
    {"diff_command", "git config diff.evil.command \"$MARK\"", "printf z > a.txt; git diff"},
    {"diff_external", "git config diff.external \"$MARK\"", "printf z > a.txt; git diff"},
    {"ssh_command", "git config core.sshCommand \"$MARK\"; git remote add origin ssh://host.invalid/x",
     "git fetch origin"},
    {"lazy_fetch",
     "git config core.sshCommand \"$MARK\"; git remote add origin ssh://host.invalid/x;"
     "git config extensions.partialClone origin; git config core.repositoryFormatVersion 1;"
     "git config remote.origin.promisor true",
     "git cat-file -e 1234567890123456789012345678901234567890"},
    {"git_proxy", "git config core.gitProxy \"$LAB/mark\"; git remote add origin git://host.invalid/x",
     "git fetch origin"},
    {"external_protocol", "git config protocol.ext.allow always; git remote add origin \"ext::$LAB/mark\"",
     "git fetch origin"},
    {"credential_helper", "git config credential.helper \"!$MARK\"",
     "printf 'protocol=https\\nhost=host.invalid\\n\\n' | GIT_TERMINAL_PROMPT=0 git credential fill"},
    {"alternate_refs_command",
     "git clone -q --bare . ../alternate.git; printf '%s\\n' \"$LAB/alternate.git/objects\" > "
     ".git/objects/info/alternates; git config core.alternateRefsCommand \"$MARK\"",
     "git clone -q --bare . ../pusher.git; cd ../pusher.git; git push -f ../source/.git "
     "HEAD:refs/heads/control"},
    {"signature_program",
     "c=$(printf 'tree %s\\nauthor a <a> 1 +0000\\ncommitter a <a> 1 +0000\\ngpgsig -----BEGIN PGP "
     "SIGNATURE-----\\n "
     "\\n x\\n -----END PGP SIGNATURE-----\\n\\nsigned\\n' $(git write-tree) | git hash-object -w -t commit "
     "--stdin);"
     "git update-ref refs/heads/main $c; git config log.showSignature true; git config gpg.program "
     "\"$LAB/mark\"",
     "git log -1"},
};

constexpr const char* kPrelude =
    "MARK=\"touch $LAB/marks/fired\"\n"
    "hook() { mkdir -p \"${1%/*}\"; printf '#!/bin/sh\\n%s\\n' \"$MARK\" > \"$1\"; chmod +x \"$1\"; }\n";

// The user's uncommitted files: what is under a driver is refused, everything else is taken along.
void take_work_tree(Lab* lab) {
  cofferdam::clone::WorkTreeWish wish;
  wish.head = lab->cloned.identity.head;
  wish.untracked = true;
  wish.author_name = "Cofferdam";
  wish.author_email = "cofferdam@localhost";
  wish.attempt_id = "id";
  cofferdam::contract::SourceFacts facts;
  lab->sh(lab->at("source"),
          "printf 2 > a.txt");  // of the same size, in the same second: its content decides
  must(count_uncommitted(lab->source, lab->at("vault"), &facts));
  EXPECT_GT(facts.dirty_files, 0U);
  EXPECT_FALSE(commit_work_tree(lab->source, wish, lab->at("vault")));
  lab->sh(lab->at("source"), "printf one > a.txt; touch -d @1600000000 a.txt; printf u > untracked");
  EXPECT_TRUE(must(commit_work_tree(lab->source, wish, lab->at("vault"))).has_value());
}

// The whole path with one change, and the patch.
void run_everything(Lab* lab) {
  lab->prepare();
  lab->sh(lab->at("work"), "printf changed > a.txt; printf new > n.txt; mkdir -p e; printf x > e/x.txt");
  auto store = lab->make_store("a");
  const std::string commit = lab->commit_work(store);
  cofferdam::handoff::PublishInput input{lab->source.git_dir, lab->source.run_as, commit,
                                         lab->cloned.identity.head, "refs/heads/cofferdam/id"};
  must(publish(store, input));
  must(store.diff(lab->cloned.identity.head, commit));
}

void make_trapped(Lab* lab, const Trap& trap) {
  must(cofferdam::make_dirs(lab->at("marks")));
  lab->sh(lab->at("."),
          "chmod 777 marks; printf '#!/bin/sh\\ntouch %s/marks/fired\\n' \"$LAB\" > mark; chmod 755 mark");
  lab->make_source("printf one > a.txt; printf '*.txt filter=evil diff=evil\\n' > .gitattributes");
  lab->sh(lab->at("source"), std::string(kPrelude) + trap.plant + "\nrm -f $LAB/marks/fired");
  lab->sh(lab->at("source"),
          "git commit-tree HEAD^{tree} -p HEAD -m second > ../second; rm -f $LAB/marks/fired");
}

class Markers : public testing::TestWithParam<Trap> {};

TEST_P(Markers, NothingFiresAndTheControlDoes) {
  Lab lab;
  make_trapped(&lab, GetParam());
  run_everything(&lab);
  take_work_tree(&lab);
  EXPECT_FALSE(cofferdam::exists(lab.at("marks/fired")));
  lab.sh(lab.at("source"), std::string("(") + GetParam().control + ") > /dev/null 2>&1 || true");
  EXPECT_TRUE(cofferdam::exists(lab.at("marks/fired"))) << "the control did not fire";
}

INSTANTIATE_TEST_SUITE_P(Traps, Markers, testing::ValuesIn(kTraps),
                         [](const auto& tested) { return std::string(tested.param.name); });

// A missing object of a partial clone is an error, not a fetch.
TEST(Markers, MissingObjectIsNotFetched) {
  Lab lab;
  make_trapped(
      &lab,
      {"",
       "git config core.sshCommand \"$MARK\"; git remote add origin ssh://host.invalid/x;"
       "git config extensions.partialClone origin; git config core.repositoryFormatVersion 1;"
       "git config remote.origin.promisor true; git repack -qad;"
       "for p in .git/objects/pack/*.pack; do : > ${p%.pack}.promisor; done;"
       "printf lost > lost.txt; git -c core.sshCommand=false add lost.txt;"
       "git -c core.sshCommand=false commit -qm lost;"
       "o=$(git rev-parse HEAD:lost.txt); rm -f .git/objects/$(echo $o | cut -c1-2)/$(echo $o | cut -c3-)",
       ""});
  auto source = must(cofferdam::clone::open_source(lab.at("source")));
  cofferdam::contract::CloneRequest request;
  request.head = must(cofferdam::clone::resolve_commit(source));
  auto cloned = cofferdam::clone::clone_head(source, request, lab.at("vault"));
  ASSERT_FALSE(cloned);
  EXPECT_EQ(cloned.error().code, cofferdam::Code::not_found) << cloned.error().line();
  EXPECT_FALSE(cofferdam::exists(lab.at("marks/fired")));
  lab.sh(lab.at("source"), "git cat-file -p HEAD:lost.txt >/dev/null 2>&1 || true");
  EXPECT_TRUE(cofferdam::exists(lab.at("marks/fired"))) << "the control did not fire";
}

// HEAD, index, configuration, reflogs, hooks, work tree: byte for byte and by their times.
TEST(Source, IsIdenticalButForThePackAndTheRef) {
  Lab lab;
  must(cofferdam::make_dirs(lab.at("marks")));
  lab.make_source("printf one > a.txt; mkdir d; printf two > d/b.txt");
  lab.sh(lab.at("source"),
         std::string(kPrelude) +
             "hook .git/hooks/pre-commit; git config core.logAllRefUpdates always; git stash list;"
             "printf dirty > a.txt; printf untracked > u; git branch other; git gc -q");
  const std::string listing =
      "find . -type f -printf '%P %m %s %T@ %U ' -exec sha256sum {} \\; | sort;"
      "find . -type l -printf '%P %l\\n' | sort";
  const std::string before = lab.sh(lab.at("source"), listing);
  run_everything(&lab);
  const std::string after = lab.sh(lab.at("source"), listing);
  lab.sh(lab.at("."), "cat > before <<'EOF'\n" + before + "\nEOF\ncat > after <<'EOF'\n" + after + "\nEOF\n");
  EXPECT_EQ(lab.sh(lab.at("."), "comm -23 before after"), "") << "changed or removed";
  EXPECT_EQ(lab.sh(lab.at("."), "comm -13 before after | cut -d' ' -f1 | sed 's/pack-[0-9a-f]*/pack-X/'"),
            ".git/objects/pack/pack-X.idx\n.git/objects/pack/pack-X.pack\n.git/refs/heads/cofferdam/id");
  // The control: plain git writes a reflog for such a ref here.
  lab.sh(lab.at("source"), "git update-ref refs/heads/control/id HEAD");
  EXPECT_TRUE(cofferdam::exists(lab.at("source/.git/logs/refs/heads/control/id")));
}

TEST(Runner, ErrorsCarryTheVerbAndGitsOwnLine) {
  Lab lab;
  lab.make_source("true");
  cofferdam::git::GitCall call;
  call.git_dir = lab.at("source/.git");
  call.args = {"cat-file", "-p", std::string(40, '1')};
  auto out = cofferdam::git::run_git(call);
  ASSERT_FALSE(out);
  EXPECT_EQ(out.error().what, "git cat-file: Not a valid object name " + std::string(40, '1'));
  call.args = {"rev-parse", "HEAD"};
  EXPECT_TRUE(cofferdam::git::run_git(call));
  call.limits.out_bytes = 5;
  EXPECT_EQ(cofferdam::git::run_git(call).error().code, cofferdam::Code::exhausted);
  call.limits = {};
  call.limits.time = std::chrono::milliseconds(50);
  call.args = {"cat-file", "--batch"};
  auto pipe = must(cofferdam::make_pipe());  // nobody writes: git would wait for ever
  EXPECT_EQ(cofferdam::git::stream_git(call, pipe.read.get(), -1).error().code, cofferdam::Code::timeout);
}

TEST(Runner, StreamsThroughDescriptors) {
  Lab lab;
  lab.make_source("head -c 3000000 /dev/zero > zero");
  auto file = must(cofferdam::open_file(lab.at("blob"), O_RDWR | O_CREAT | O_EXCL));
  cofferdam::git::GitCall call;
  call.git_dir = lab.at("source/.git");
  call.args = {"cat-file", "blob", "HEAD:zero"};
  must(cofferdam::git::stream_git(call, -1, file.get()));
  EXPECT_EQ(lab.sh(lab.at("."), "cmp blob source/zero && stat -c %s blob"), "3000000");
}

TEST(Runner, APipeSaysWhichSideFailed) {
  Lab lab;
  lab.make_source("head -c 3000000 /dev/zero > zero");
  cofferdam::git::GitCall from;
  from.git_dir = lab.at("source/.git");
  from.args = {"cat-file", "blob", "HEAD:zero"};
  cofferdam::git::GitCall into;
  into.git_dir = lab.at("source/.git");
  into.args = {"hash-object", "--stdin"};
  EXPECT_EQ(must(cofferdam::git::pipe_git(from, into)),
            lab.sh(lab.at("source"), "git rev-parse HEAD:zero") + "\n");
  into.args = {"index-pack", "--stdin"};  // not a pack: it ends while the other still writes
  EXPECT_EQ(cofferdam::git::pipe_git(from, into).error().what, "git index-pack: pack signature mismatch");
  from.args = {"cat-file", "blob", "HEAD:missing"};
  EXPECT_NE(cofferdam::git::pipe_git(from, into).error().what.find("git cat-file: "), std::string::npos);
}

// The environment of the caller never reaches git.
TEST(Runner, InheritsNothing) {
  Lab lab;
  lab.make_source("true");
  ::setenv("GIT_CONFIG_COUNT", "1", 1);
  ::setenv("GIT_CONFIG_KEY_0", "user.marker", 1);
  ::setenv("GIT_CONFIG_VALUE_0", "inherited", 1);
  cofferdam::git::GitCall call;
  call.git_dir = lab.at("source/.git");
  call.args = {"config", "--get", "user.marker"};
  EXPECT_FALSE(cofferdam::git::run_git(call));
  call.extra_env = {"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=user.marker", "GIT_CONFIG_VALUE_0=given"};
  EXPECT_EQ(must(cofferdam::git::run_git(call)), "given\n");  // the control
  ::unsetenv("GIT_CONFIG_COUNT");
}

}  // namespace
