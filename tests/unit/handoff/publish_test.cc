// Publication into the user's repository: objects and one new ref, nothing else, and never over anybody's
// name.
#include "handoff/publish.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <thread>

#include "support/world.h"
#include "unit/handoff/lab.h"

namespace {

using cofferdam::Code;
using cofferdam::handoff::PublishInput;
using lab::Lab;
using lab::must;

constexpr const char* kBase = "printf one > a.txt; mkdir d; printf two > d/b.txt";

PublishInput input_for(const Lab& lab, const std::string& commit, const std::string& id) {
  PublishInput input;
  input.git_dir = lab.source.git_dir;
  input.run_as = lab.source.run_as;
  input.commit = commit;
  input.base_head = lab.cloned.identity.head;
  input.ref = cofferdam::handoff::branch_ref("cofferdam", id);
  return input;
}

struct Ready {
  Ready() {
    lab.make_source(kBase);
    lab.prepare();
    lab.edit("printf new > n.txt; rm d/b.txt");
    store.emplace(lab.make_store("a"));
    commit = lab.commit_work(*store);
  }
  Lab lab;
  std::optional<cofferdam::handoff::AttemptStore> store;
  std::string commit;
};

TEST(Publish, CreatesOneBranchWithTheVerifiedCommit) {
  Ready ready;
  EXPECT_EQ(must(publish(*ready.store, input_for(ready.lab, ready.commit, "id-1"))),
            "refs/heads/cofferdam/id-1");
  const std::string source = ready.lab.at("source");
  EXPECT_EQ(ready.lab.sh(source, "git rev-parse cofferdam/id-1 cofferdam/id-1^ cofferdam/id-1^{tree}"),
            ready.commit + "\n" + ready.lab.cloned.identity.head + "\n" + ready.lab.trusted_tree());
  ready.lab.sh(source, "git fsck --strict");
  EXPECT_EQ(ready.lab.sh(source, "git log -1 --format='%an %ae %at %ct %s' cofferdam/id-1"),
            "Cofferdam cofferdam@localhost 1700000000 1700000000 change");
}

TEST(Publish, DiffIsTextOfTheChange) {
  Ready ready;
  const std::string diff = must(ready.store->diff(ready.lab.cloned.identity.head, ready.commit));
  EXPECT_NE(diff.find("+++ b/n.txt"), std::string::npos);
  EXPECT_NE(diff.find("deleted file mode 100644"), std::string::npos);
  EXPECT_EQ(diff.find('\x1b'), std::string::npos);
  auto bounded = ready.store->diff(ready.lab.cloned.identity.head, ready.commit, 10);
  ASSERT_FALSE(bounded);
  EXPECT_EQ(bounded.error().code, Code::exhausted);
}

// git itself checks it; the text of the commit is the same but for the signature.
TEST(Store, SignsWithASshKeyAndNotWithAnother) {
  if (!cofferdam::exists("/usr/bin/ssh-keygen")) {
    return cofferdam::test::skip_or_fail("ssh-keygen", "ssh-keygen is not installed");
  }
  for (const char* format : {"sha1", "sha256"}) {
    SCOPED_TRACE(format);
    Lab lab;
    lab.make_source(kBase, format);
    lab.prepare();
    lab.edit("printf new > n.txt");
    auto store = lab.make_store("a");
    const std::string plain = lab.commit_work(store);
    lab.sh(lab.at("."),
           "ssh-keygen -q -t ed25519 -N '' -f key; ssh-keygen -q -t ed25519 -N '' -f other;"
           "echo \"cofferdam@localhost $(cut -d' ' -f1,2 key.pub)\" > signers;"
           "echo \"cofferdam@localhost $(cut -d' ' -f1,2 other.pub)\" > others");
    cofferdam::handoff::CommitInput input;
    input.tree = lab.sh(store.path(), "git rev-parse " + plain + "^{tree}");
    input.parent = lab.cloned.identity.head;
    input.author_name = "Cofferdam";
    input.author_email = "cofferdam@localhost";
    input.time.ms = 1'700'000'000'000;
    input.message = "change\n";
    EXPECT_EQ(must(store.commit(input)), plain);
    EXPECT_FALSE(must(store.is_signed(plain)));
    input.sign_key = lab.at("key");
    const std::string commit = must(store.commit(input));
    EXPECT_TRUE(must(store.is_signed(commit)));
    const std::string verify = "git -c gpg.ssh.allowedSignersFile=$LAB/";
    lab.sh(store.path(), verify + "signers verify-commit " + commit);
    lab.sh(store.path(), "! " + verify + "others verify-commit " + commit);  // the controls
    lab.sh(store.path(), "! " + verify + "signers verify-commit " + plain);
    must(publish(store, input_for(lab, commit, "id-1")));  // git's checks of objects take it
    input.sign_key = lab.at("missing");
    auto refused = store.commit(input);
    ASSERT_FALSE(refused);
    EXPECT_NE(refused.error().line().find("commit.sign_key"), std::string::npos) << refused.error().line();
    lab.sh(lab.at("."), "ssh-keygen -q -t ed25519 -N secret -f locked");
    input.sign_key = lab.at("locked");
    EXPECT_FALSE(store.commit(input));  // nobody is asked for a passphrase
  }
}

// attacks.md G14.
TEST(Publish, NamesThatAreTakenAreConflictsAndNothingIsWritten) {
  struct {
    const char* branch;
    const char* says;
    const char* prefix;
  } const cases[] = {
      {"cofferdam", "branch.prefix", "cofferdam"},
      {"team", "branch.prefix", "team/cofferdam"},
      {"cofferdam/id-1", "exists already", "cofferdam"},
      {"cofferdam/id-1/deeper", "branch.prefix", "cofferdam"},
  };
  Ready ready;
  const std::string source = ready.lab.at("source");
  for (const char* pack : {"true", "git pack-refs --all"}) {
    for (const auto& one : cases) {
      SCOPED_TRACE(one.branch);
      ready.lab.sh(source, std::string("git branch ") + one.branch + ";" + pack);
      const std::string before = ready.lab.sh(source, "find .git | sort; git for-each-ref");
      PublishInput input = input_for(ready.lab, ready.commit, "id-1");
      input.ref = cofferdam::handoff::branch_ref(one.prefix, "id-1");
      auto published = publish(*ready.store, input);
      ASSERT_FALSE(published);
      EXPECT_EQ(published.error().code, Code::conflict);
      EXPECT_NE(published.error().line().find(one.says), std::string::npos) << published.error().line();
      EXPECT_EQ(ready.lab.sh(source, "find .git | sort; git for-each-ref"), before);
      ready.lab.sh(source, std::string("git branch -qD ") + one.branch);
    }
  }
  // The control: neighbours do not disturb.
  ready.lab.sh(source, "git branch other; git branch cofferdam/id-2; git branch cofferdamx");
  EXPECT_TRUE(publish(*ready.store, input_for(ready.lab, ready.commit, "id-1")));
}

TEST(Publish, OfTwoAtOnceOneWinsAndTheOtherIsAConflict) {
  Ready ready;
  // The same change, committed once more.
  const std::string later =
      ready.lab.sh(ready.store->path(),
                   "GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b "
                   "git commit-tree -p " +
                       ready.commit + "^ -m later " + ready.commit + "^{tree}");
  ASSERT_NE(later, ready.commit);
  std::optional<cofferdam::Result<std::string>> results[2];
  {
    std::thread other(
        [&] { results[1].emplace(publish(*ready.store, input_for(ready.lab, later, "id-1"))); });
    results[0].emplace(publish(*ready.store, input_for(ready.lab, ready.commit, "id-1")));
    other.join();
  }
  EXPECT_NE(results[0]->has_value(), results[1]->has_value());
  for (const auto& result : results) {
    if (result->has_value()) continue;
    EXPECT_EQ(result->error().code, Code::conflict) << result->error().line();
  }
}

// A publication that was broken off behind the ref is made once more.
TEST(Publish, TheSameCommitTwiceIsOneBranch) {
  Ready ready;
  const std::string first = must(publish(*ready.store, input_for(ready.lab, ready.commit, "id-1")));
  EXPECT_EQ(must(publish(*ready.store, input_for(ready.lab, ready.commit, "id-1"))), first);
}

// With the history behind it, if the store has that; otherwise nothing is written.
TEST(Publish, APrunedBaseIsBroughtAlong) {
  Ready ready;
  const std::string source = ready.lab.at("source");
  ready.lab.sh(source,
               "git checkout -q --orphan fresh; git commit -q --allow-empty -m fresh; git branch -D main -q;"
               "git reflog expire --expire=now --all; git gc -q --prune=now");
  const std::string cut = ready.store->path() + "/shallow";
  ready.lab.sh(source, "echo " + ready.lab.cloned.identity.head + " > " + cut);
  auto published = publish(*ready.store, input_for(ready.lab, ready.commit, "id-1"));
  ASSERT_FALSE(published);
  EXPECT_EQ(published.error().code, Code::not_found);
  EXPECT_NE(published.error().what.find("no longer has"), std::string::npos) << published.error().what;
  EXPECT_EQ(ready.lab.sh(source, "git for-each-ref --format='%(refname)'"), "refs/heads/fresh");
  ready.lab.sh(source, "rm " + cut);
  EXPECT_EQ(must(publish(*ready.store, input_for(ready.lab, ready.commit, "id-1"))),
            "refs/heads/cofferdam/id-1");
  EXPECT_EQ(ready.lab.sh(source, "git rev-parse cofferdam/id-1^"), ready.lab.cloned.identity.head);
  ready.lab.sh(source, "git fsck --strict");
}

// attacks.md G13: a root supervisor works as the owner of the repository, for reading and for writing.
TEST(Publish, RootWorksAsTheOwnerOfTheRepository) {
  if (::geteuid() != 0) {
    return cofferdam::test::skip_or_fail("root", "the repository must belong to another user");
  }
  Lab lab;
  lab.make_source(kBase);
  lab.sh(lab.at("."), "chown -R 12345:12345 source");
  lab.prepare();
  ASSERT_TRUE(lab.source.run_as.has_value());
  EXPECT_EQ(lab.source.run_as->uid, 12345U);
  // The control: plain git as root is refused by git's own check of the owner.
  EXPECT_EQ(lab.sh(lab.at("source"), "git rev-parse HEAD 2>/dev/null || echo refused"), "refused");
  lab.sh(lab.at("work"), "printf new > n.txt");
  auto store = lab.make_store("a");
  const std::string commit = lab.commit_work(store);
  must(publish(store, input_for(lab, commit, "id-1")));
  EXPECT_EQ(lab.sh(lab.at("source"), "find . ! -user 12345 | wc -l"), "0");
}

// What a failure leaves: the work in the store, and nothing that git does not clear away.
TEST(Publish, SaysHowToPublishLaterAndCanBe) {
  Ready ready;
  const std::string source = ready.lab.at("source");
  const struct {
    const char* breaks;
    const char* mends;
    const char* says;
  } cases[] = {
      {"mkdir -p .git/refs/heads/cofferdam; : > .git/refs/heads/cofferdam/id-1.lock",
       "rm .git/refs/heads/cofferdam/id-1.lock", "cannot create refs/heads/cofferdam/id-1"},
      {"mv .git away", "mv away .git", "No such file or directory"},
      {"mv .git/objects away; : > .git/objects", "rm .git/objects; mv away .git/objects", "objects"},
  };
  for (const auto& one : cases) {
    SCOPED_TRACE(one.breaks);
    ready.lab.sh(source, one.breaks);
    auto published = publish(*ready.store, input_for(ready.lab, ready.commit, "id-1"));
    ready.lab.sh(source, one.mends);
    ASSERT_FALSE(published);
    EXPECT_NE(published.error().line().find(one.says), std::string::npos) << published.error().line();
    EXPECT_NE(published.error().line().find("cofferdam recover"), std::string::npos)
        << published.error().line();
    EXPECT_EQ(ready.lab.sh(source, "git for-each-ref refs/heads/cofferdam"), "");
    EXPECT_EQ(ready.lab.sh(source, "find .git -name 'tmp_*'"), "");
  }
  must(publish(*ready.store, input_for(ready.lab, ready.commit, "id-1")));
}

TEST(Publish, AReadOnlyRepositoryIsAnErrorThatCanBeMended) {
  Ready ready;
  const std::string source = ready.lab.at("source");
  // Nobody but an owner without root's rights is held off by modes.
  if (::geteuid() == 0) {
    ready.lab.sh(ready.lab.at("."), "chown -R 12345:12345 source");
    ready.lab.source = must(cofferdam::clone::open_source(source));
  }
  ready.lab.sh(source, "chmod 555 .git/objects");
  auto published = publish(*ready.store, input_for(ready.lab, ready.commit, "id-1"));
  ready.lab.sh(source, "chmod 755 .git/objects");
  ASSERT_FALSE(published);
  EXPECT_NE(published.error().line().find("ermission denied"), std::string::npos) << published.error().line();
  EXPECT_NE(published.error().line().find("cofferdam recover"), std::string::npos)
      << published.error().line();
  must(publish(*ready.store, input_for(ready.lab, ready.commit, "id-1")));
}

// The owner of a repository makes links; the caller, root or not, writes nowhere but in the repository.
TEST(Publish, LinksOnTheWayAreRefusedAndWhatTheyLeadToStaysAsItWas) {
  const struct {
    const char* name;
    const char* plant;
  } cases[] = {
      {"pack", "mv .git/objects/pack ../elsewhere; ln -s ../../../elsewhere .git/objects/pack"},
      {"prefix", "mkdir ../elsewhere; ln -s ../../../../elsewhere .git/refs/heads/cofferdam"},
      {"ref",
       "mkdir ../elsewhere .git/refs/heads/cofferdam;"
       "ln -s ../../../../../elsewhere/id-1 .git/refs/heads/cofferdam/id-1"},
  };
  for (const auto& one : cases) {
    SCOPED_TRACE(one.name);
    Ready ready;
    const std::string source = ready.lab.at("source");
    ready.lab.sh(source, one.plant);
    const std::string before = ready.lab.sh(ready.lab.at("."), "find elsewhere source | sort");
    auto published = publish(*ready.store, input_for(ready.lab, ready.commit, "id-1"));
    ASSERT_FALSE(published);
    EXPECT_EQ(published.error().code, Code::denied);
    EXPECT_NE(published.error().line().find("symbolic link"), std::string::npos) << published.error().line();
    EXPECT_EQ(ready.lab.sh(ready.lab.at("."), "find elsewhere source | sort"), before);
    // The control: plain git follows it.
    if (std::string(one.name) == "prefix") {
      ready.lab.sh(source, "git update-ref refs/heads/cofferdam/id-1 HEAD; test -f ../elsewhere/id-1");
    } else if (std::string(one.name) == "pack") {
      ready.lab.sh(source, "git repack -qad; ls ../elsewhere/pack-*.pack");
    }
  }
}

// As git-new-workdir makes it: links of the same owner's, to folders of the same owner's.
TEST(Publish, LinkedFoldersOfTheSameOwnerAreFollowed) {
  Ready ready;
  const std::string source = ready.lab.at("source");
  ready.lab.sh(source,
               "mv .git/objects ../objects; mv .git/refs ../refs; ln -s ../../objects .git/objects;"
               "ln -s ../../refs .git/refs");
  must(publish(*ready.store, input_for(ready.lab, ready.commit, "id-1")));
  EXPECT_EQ(ready.lab.sh(source, "git rev-parse cofferdam/id-1"), ready.commit);
}

TEST(Publish, NobodyButTheOwnerWrites) {
  if (::geteuid() != 0) {
    return cofferdam::test::skip_or_fail("root", "the repository must belong to another user");
  }
  Ready ready;
  ready.lab.sh(ready.lab.at("."), "chown -R 12345:12345 source");
  PublishInput input = input_for(ready.lab, ready.commit, "id-1");
  input.run_as = std::nullopt;  // root as itself
  auto published = publish(*ready.store, input);
  ASSERT_FALSE(published);
  EXPECT_EQ(published.error().code, Code::denied);
  EXPECT_NE(published.error().line().find("belongs to another user"), std::string::npos);
  input.run_as = cofferdam::UserIds{12345, 12345};
  must(publish(*ready.store, input));
  // A link of the owner's to a folder of root's leads nowhere, whoever runs us.
  ready.lab.sh(ready.lab.at("."),
               "mkdir roots; mv source/.git/objects theirs; cp -a theirs/. roots;"
               "chown -R 0:0 roots; ln -s ../../roots source/.git/objects");
  input.ref = cofferdam::handoff::branch_ref("cofferdam", "id-2");
  const std::string before = ready.lab.sh(ready.lab.at("roots"), "find . | sort");
  EXPECT_EQ(publish(*ready.store, input).error().code, Code::denied);
  EXPECT_EQ(ready.lab.sh(ready.lab.at("roots"), "find . | sort"), before);
}

// core.sharedRepository and the set-group-id bit: what is added can be used by the group, as what git adds.
TEST(Publish, OwnersAndModesFollowTheRepository) {
  Ready ready;
  const std::string source = ready.lab.at("source");
  ready.lab.sh(source,
               "git config core.sharedRepository 0660; umask 077;"
               "find .git -type d -exec chmod g+rwxs {} +");
  if (::geteuid() == 0) {
    ready.lab.sh(ready.lab.at("."),
                 "chown -R 12345:23456 source; find source/.git -type d -exec chmod g+s {} +");
    ready.lab.source = must(cofferdam::clone::open_source(source));
  }
  const mode_t mask = ::umask(077);
  auto published = publish(*ready.store, input_for(ready.lab, ready.commit, "id-1"));
  ::umask(mask);
  must(std::move(published));
  const std::string added =
      ".git/refs/heads/cofferdam .git/refs/heads/cofferdam/id-1 .git/objects/pack/pack-*";
  EXPECT_EQ(ready.lab.sh(source, "stat -c '%A' " + added + " | cut -c2-7 | sort -u"),
            "r--r--\nrw-rw-\nrwxrws");
  if (::geteuid() == 0) {
    EXPECT_EQ(ready.lab.sh(source, "stat -c '%u:%g' " + added + " | sort -u"), "12345:23456");
  }
}

// The quarantine is one that git knows how to remove.
TEST(Publish, WhatAKillLeavesGitPruneClearsAway) {
  Ready ready;
  const std::string source = ready.lab.at("source");
  ready.lab.sh(source,
               "mkdir -p .git/objects/tmp_objdir-cofferdam-0123/pack;"
               ": > .git/objects/tmp_objdir-cofferdam-0123/pack/tmp_pack_x");
  must(publish(*ready.store, input_for(ready.lab, ready.commit, "id-1")));  // not disturbed by another one's
  EXPECT_EQ(ready.lab.sh(source, "find .git -name 'tmp_objdir*' | wc -l"), "1");
  ready.lab.sh(source, "git prune --expire=now");
  EXPECT_EQ(ready.lab.sh(source, "find .git -name 'tmp_*'"), "");
  EXPECT_EQ(ready.lab.sh(source, "git rev-parse cofferdam/id-1"), ready.commit);
}

}  // namespace
