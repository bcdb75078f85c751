// From the user's repository to a base pack: found as git finds it, refused with what to do, exactly what the
// head reaches.
#include "clone/clone.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <thread>
#include <vector>

#include "base/sha256.h"
#include "support/world.h"
#include "unit/handoff/lab.h"

namespace {

using cofferdam::Code;
using cofferdam::clone::clone_head;
using cofferdam::clone::open_source;
using cofferdam::clone::resolve_commit;
using cofferdam::contract::CloneRequest;
using lab::Lab;
using lab::must;

constexpr const char* kBase =
    "printf one > a.txt; mkdir -p d/deep; printf two > d/b.txt; git add -A; git commit -qm 0;"
    "printf three > a.txt";

CloneRequest request_for(const std::string& head) {
  CloneRequest request;
  request.head = head;
  return request;
}

TEST(OpenSource, FindsTheRepositoryAsGitDoes) {
  Lab lab;
  lab.make_source(kBase);
  const std::string git_dir = lab.at("source/.git");
  for (const char* path : {"source", "source/d", "source/d/../d", "source/.git"}) {
    auto source = must(open_source(lab.at(path)));
    EXPECT_EQ(source.git_dir, git_dir) << path;
    EXPECT_EQ(source.object_format, "sha1");
  }
  EXPECT_EQ(must(open_source(lab.at("source/d"))).work_tree, lab.at("source"));
  lab.sh(lab.at("."),
         "git clone -q --bare source bare.git; mkdir moved; cp -r source/.git real.git;"
         "ln -s ../real.git moved/.git; ln -s source/d shortcut");
  EXPECT_EQ(must(open_source(lab.at("bare.git"))).git_dir, lab.at("bare.git"));
  EXPECT_EQ(must(open_source(lab.at("bare.git"))).work_tree, "");
  EXPECT_EQ(must(open_source(lab.at("moved"))).git_dir, lab.at("real.git"));
  EXPECT_EQ(must(open_source(lab.at("shortcut"))).git_dir, git_dir);
}

TEST(OpenSource, RefusesWithWhatToDo) {
  Lab lab;
  lab.make_source(kBase);
  lab.sh(lab.at("."), "mkdir plain; printf 'gitdir: x\\n' > plain/.git");
  struct {
    const char* path;
    const char* says;
  } const cases[] = {
      {"missing", "not there"},
      {"source/a.txt", "no folder"},
      {"home", "not in a git repository"},
      {"plain", "not in a git repository"},
  };
  for (const auto& one : cases) {
    auto source = open_source(lab.at(one.path));
    ASSERT_FALSE(source) << one.path;
    EXPECT_EQ(source.error().code, Code::usage);
    EXPECT_NE(source.error().line().find(one.says), std::string::npos) << source.error().line();
    EXPECT_FALSE(source.error().hint.empty());
  }
}

TEST(ResolveCommit, NamesAndWhatIsNone) {
  Lab lab;
  lab.make_source(kBase);
  lab.sh(lab.at("source"),
         "git tag -a v1 -m v1; git branch other HEAD~; git update-ref refs/heads/--dash HEAD~");
  auto source = must(open_source(lab.at("source")));
  const std::string head = lab.sh(lab.at("source"), "git rev-parse HEAD");
  const std::string before = lab.sh(lab.at("source"), "git rev-parse HEAD~");
  EXPECT_EQ(must(resolve_commit(source)), head);
  EXPECT_EQ(must(resolve_commit(source, "v1")), head);
  EXPECT_EQ(must(resolve_commit(source, head.substr(0, 12))), head);
  EXPECT_EQ(must(resolve_commit(source, "other")), before);
  EXPECT_EQ(must(resolve_commit(source, "--dash")), before);
  for (const char* bad :
       {"nothing", "--all", "--show-toplevel", "HEAD:a.txt", "HEAD^{tree}", "", "a..b", "HEAD\nHEAD"}) {
    auto id = resolve_commit(source, bad);
    ASSERT_FALSE(id) << bad;
    EXPECT_EQ(id.error().code, Code::usage) << bad;
  }
}

TEST(ResolveCommit, UnbornHeadSaysThatThereIsNoCommitYet) {
  Lab lab;
  lab.sh(lab.at("."), "git init -q empty");
  auto id = resolve_commit(must(open_source(lab.at("empty"))));
  ASSERT_FALSE(id);
  EXPECT_EQ(id.error().code, Code::usage);
  EXPECT_NE(id.error().line().find("no commit yet"), std::string::npos);
}

// attacks.md G3: no other branch, stash, reflog or unreachable object is in the pack.
TEST(CloneHead, PackHoldsExactlyWhatTheHeadReaches) {
  const mode_t umask_before = ::umask(0077);
  for (const char* storage :
       {"true", "git repack -qadb --write-bitmap-index", "git pack-refs --all; git gc -q"}) {
    Lab lab;
    lab.make_source(kBase);
    lab.sh(
        lab.at("source"),
        "git checkout -q -b secret; printf s > secret; git add -A; git commit -qm secret; git checkout -q "
        "main;"
        "printf stashed > a.txt; git stash -q; printf loose | git hash-object -w --stdin; git tag -a t -m t");
    lab.sh(lab.at("source"), storage);
    auto source = must(open_source(lab.at("source")));
    auto request = request_for(must(resolve_commit(source)));
    request.tree = lab.sh(lab.at("source"), "git rev-parse HEAD^{tree}");
    auto cloned = must(clone_head(source, request, lab.at("vault")));
    const std::string reached =
        lab.sh(lab.at("source"), "git rev-list --objects --no-object-names HEAD | sort");
    EXPECT_EQ(lab.sh(lab.at("."), "git show-index < " + cofferdam::contract::index_of(cloned.packs.packs[0]) +
                                      " | cut -d' ' -f2 | sort"),
              reached);
    EXPECT_EQ(cloned.identity.head, request.head);
    EXPECT_EQ(cloned.identity.tree, *request.tree);
    EXPECT_EQ(cloned.identity.repository, lab.at("source/.git"));
    const std::string zero(1, '\0');
    EXPECT_EQ(cloned.identity.id,
              cofferdam::sha256_hex(cloned.identity.repository + zero + request.head + zero + *request.tree));
    EXPECT_EQ(cloned.packs.objects_dir, lab.at("vault/") +
                                            cofferdam::sha256_hex(cloned.identity.repository).substr(0, 16) +
                                            "/base/" + request.head + "/objects");
    // A box of another user reads it through its mount, whatever our umask is.
    EXPECT_EQ(lab.sh(cloned.packs.objects_dir, "stat -c %a . pack pack/* | sort -u"), "444\n755");
    // Found again, not made again.
    const std::string stamp = lab.sh(lab.at("."), "stat -c '%i %y %z' " + cloned.packs.packs[0]);
    EXPECT_EQ(must(clone_head(source, request, lab.at("vault"))).packs.packs[0], cloned.packs.packs[0]);
    EXPECT_EQ(lab.sh(lab.at("."), "stat -c '%i %y %z' " + cloned.packs.packs[0]), stamp);
  }
  ::umask(umask_before);
}

TEST(CloneHead, ManyAtOnceAllSucceedAndLeaveOnePack) {
  Lab lab;
  lab.make_source(kBase);
  auto source = must(open_source(lab.at("source")));
  auto request = request_for(must(resolve_commit(source)));
  std::vector<std::string> paths(4);
  {
    std::vector<std::thread> threads;
    for (std::string& path : paths) {
      threads.emplace_back([&] {
        auto cloned = clone_head(source, request, lab.at("vault"));
        path = cloned ? cloned->packs.packs[0] : cloned.error().line();
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  for (const std::string& path : paths) EXPECT_EQ(path, paths.front());
  EXPECT_EQ(lab.sh(lab.at("vault"), "ls -A */base"), request.head);
  EXPECT_EQ(lab.sh(lab.at("vault"), "ls */base/*/objects/pack | wc -l"), "2");
}

TEST(CloneHead, RefusesWhatIsNotTheHead) {
  Lab lab;
  lab.make_source(kBase);
  lab.sh(lab.at("source"), "git tag -a v1 -m v1");
  auto source = must(open_source(lab.at("source")));
  auto code = [&](const CloneRequest& request) {
    auto cloned = clone_head(source, request, lab.at("vault"));
    return cloned ? std::string("cloned") : std::string(code_name(cloned.error().code));
  };
  EXPECT_EQ(code(request_for("HEAD")), "usage");
  EXPECT_EQ(code(request_for(lab.sh(lab.at("source"), "git rev-parse v1"))), "usage");
  EXPECT_EQ(code(request_for(lab.sh(lab.at("source"), "git rev-parse HEAD:a.txt"))), "usage");
  EXPECT_EQ(code(request_for(std::string(40, '1'))), "not-found");
  auto request = request_for(must(resolve_commit(source)));
  request.tree = std::string(40, '1');
  EXPECT_EQ(code(request), "usage");
  request.tree.reset();
  EXPECT_EQ(code(request), "cloned");
}

TEST(CloneHead, OldHistoryThatFsckWouldRefuseIsTaken) {
  Lab lab;
  lab.make_source(kBase);
  lab.sh(lab.at("source"),
         "c=$(git cat-file commit HEAD | sed 's/^author .*/author No Date <>/' | git hash-object -w "
         "--literally -t "
         "commit --stdin); git update-ref refs/heads/main $(git commit-tree HEAD^{tree} -p $c -m on)");
  lab.prepare();
  EXPECT_THROW(lab.sh(lab.at("source"), "git fsck 2>&1"), std::runtime_error);  // the control
  lab.sh(lab.at("work"), "printf new > n.txt");
  auto store = lab.make_store("a");
  cofferdam::handoff::PublishInput input{lab.source.git_dir, lab.source.run_as, lab.commit_work(store),
                                         lab.cloned.identity.head, "refs/heads/cofferdam/id"};
  must(publish(store, input));
}

// A source's alternates are read with the rights of the source's owner, never with root's.
TEST(CloneHead, AlternatesAreReadWithTheOwnersRights) {
  if (::geteuid() != 0) {
    return cofferdam::test::skip_or_fail("root", "the repository must belong to another user");
  }
  Lab lab;
  lab.make_source(kBase);
  lab.sh(lab.at("."), "git clone -q --shared source borrower; chown -R 12345:12345 borrower");
  auto source = must(open_source(lab.at("borrower")));
  const std::string head = lab.sh(lab.at("source"), "git rev-parse HEAD");
  lab.sh(lab.at("."), "chmod 700 source");
  EXPECT_FALSE(clone_head(source, request_for(head), lab.at("vault")));
  lab.sh(lab.at("."), "chmod 755 source");
  must(clone_head(source, request_for(head), lab.at("vault")));  // the control
}

}  // namespace
