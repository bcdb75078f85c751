// The vault as a cache: which packs go, and that nobody who needs one loses it.
#include "clone/cache.h"

#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <thread>
#include <vector>

#include "base/in_use.h"
#include "unit/handoff/lab.h"

namespace {

using cofferdam::Code;
using cofferdam::exists;
using cofferdam::is_directory;
using cofferdam::Nursery;
using cofferdam::clone::BaseEntry;
using cofferdam::clone::CacheBounds;
using cofferdam::clone::choose_evicted;
using cofferdam::clone::clone_head;
using cofferdam::clone::evict_bases;
using cofferdam::clone::list_bases;
using cofferdam::clone::open_source;
using cofferdam::clone::use_base;
using cofferdam::contract::CloneRequest;
using lab::Lab;
using lab::must;

BaseEntry entry(const std::string& head, std::uint64_t bytes, std::int64_t used) {
  BaseEntry one;
  one.head = head;
  one.bytes = bytes;
  one.last_use_ns = used;
  return one;
}

using Indices = std::vector<std::size_t>;

TEST(ChooseEvicted, LeastRecentlyUsedFirstUntilWithinTheBound) {
  const std::vector<BaseEntry> entries = {entry("a", 10, 30), entry("b", 10, 10), entry("c", 10, 20)};
  EXPECT_EQ(choose_evicted(entries, {30}), Indices{});
  EXPECT_EQ(choose_evicted(entries, {29}), (Indices{1}));
  EXPECT_EQ(choose_evicted(entries, {20}), (Indices{1}));
  EXPECT_EQ(choose_evicted(entries, {19}), (Indices{1, 2}));
  EXPECT_EQ(choose_evicted(entries, {0}), (Indices{1, 2, 0}));
  EXPECT_EQ(choose_evicted({}, {0}), Indices{});
}

TEST(ChooseEvicted, WhatIsNeededNeitherGoesNorCounts) {
  std::vector<BaseEntry> entries = {entry("a", 100, 1), entry("b", 100, 2), entry("c", 100, 3),
                                    entry("d", 10, 4)};
  entries[0].in_use = true;
  entries[1].borrowers = {"some-attempt"};
  EXPECT_EQ(choose_evicted(entries, {10, {"c"}}), Indices{});
  EXPECT_EQ(choose_evicted(entries, {9, {"c"}}), (Indices{3}));
  EXPECT_EQ(choose_evicted(entries, {9}), (Indices{2, 3})) << "the control: c without its running attempt";
}

// What two bases share counts once, and goes with the last of them.
TEST(ChooseEvicted, SharedFilesCountOnce) {
  std::vector<BaseEntry> entries = {entry("a", 10, 1), entry("b", 10, 2), entry("c", 10, 3)};
  for (BaseEntry& one : entries) one.shared = {{7, 100}};
  EXPECT_EQ(choose_evicted(entries, {130}), Indices{});
  EXPECT_EQ(choose_evicted(entries, {129}), (Indices{0}));
  EXPECT_EQ(choose_evicted(entries, {109}), (Indices{0, 1, 2}));
  entries[2].in_use = true;
  EXPECT_EQ(choose_evicted(entries, {20}), Indices{}) << "one that stays has them anyway";
  EXPECT_EQ(choose_evicted(entries, {10}), (Indices{0}));
}

// A repository with some commits, and a state folder.
class Cache : public ::testing::Test {
 protected:
  void SetUp() override {
    lab_.make_source("printf 0 > a.txt");
    for (const char* word : {"1", "2"}) {
      lab_.sh(lab_.at("source"), std::string("printf ") + word + " > a.txt; git commit -qam " + word);
    }
    source_ = must(open_source(lab_.at("source")));
    for (const char* name : {"HEAD~2", "HEAD~1", "HEAD"}) {
      heads_.push_back(must(resolve_commit(source_, name)));
    }
  }
  std::string state() const { return lab_.at("state"); }
  cofferdam::clone::Cloned clone(std::size_t head) const {
    CloneRequest request;
    request.head = heads_[head];
    return must(clone_head(source_, request, state() + "/vault"));
  }
  static std::string folder_of(const cofferdam::clone::Cloned& cloned) {
    const std::string& objects = cloned.packs.objects_dir;
    return objects.substr(0, objects.rfind('/'));
  }
  std::vector<std::string> evict(const CacheBounds& bounds) const {
    std::vector<std::string> heads;
    for (const BaseEntry& one : must(evict_bases(state(), bounds)).removed) heads.push_back(one.head);
    return heads;
  }
  std::vector<std::string> heads(const Indices& indices) const {
    std::vector<std::string> out;
    for (const std::size_t index : indices) out.push_back(heads_[index]);
    return out;
  }

  Lab lab_;
  cofferdam::clone::Source source_;
  std::vector<std::string> heads_;
};

TEST_F(Cache, NothingThereIsNothingToDo) {
  EXPECT_TRUE(must(list_bases(state())).empty());
  EXPECT_TRUE(evict({0}).empty());
  EXPECT_FALSE(exists(state()));
}

TEST_F(Cache, ListsWhatIsThere) {
  const cofferdam::clone::Cloned held = clone(0);
  clone(1);
  const auto entries = must(list_bases(state()));
  ASSERT_EQ(entries.size(), 2U);
  for (const BaseEntry& one : entries) {
    EXPECT_EQ(one.repository, source_.git_dir);
    EXPECT_EQ(one.in_use, one.head == heads_[0]);
    EXPECT_GT(one.bytes, held.packs.bytes / 2);
    EXPECT_TRUE(is_directory(state() + "/vault/" + one.key + "/objects/pack"));
    EXPECT_GT(one.last_use_ns, 0);
  }
}

TEST_F(Cache, EvictsTheOneThatWasNotUsedForTheLongestTime) {
  for (std::size_t head = 0; head < 3; ++head) clone(head);
  clone(0);  // used again
  std::uint64_t total = 0;
  std::map<std::uint64_t, std::uint64_t> shared;
  for (const BaseEntry& one : must(list_bases(state()))) {
    total += one.bytes;
    for (const auto& file : one.shared) shared[file.inode] = file.bytes;
  }
  EXPECT_FALSE(shared.empty()) << "the later heads have the packs of the first";
  for (const auto& [inode, bytes] : shared) total += bytes;
  EXPECT_EQ(evict({total}), heads({}));
  EXPECT_EQ(evict({total - 1}), heads({1}));
  EXPECT_EQ(evict({0}), heads({2, 0}));
  EXPECT_EQ(lab_.sh(state() + "/vault", "ls -A */base"), "");
  // What has gone is made again.
  EXPECT_TRUE(exists(clone(1).packs.packs[0]));
}

TEST_F(Cache, KeepsWhatAProcessUses) {
  {
    const cofferdam::clone::Cloned first = clone(0);
    const cofferdam::clone::Cloned second = clone(0);
    EXPECT_TRUE(evict({0}).empty());
    EXPECT_TRUE(exists(first.packs.packs[0]));
  }
  EXPECT_EQ(evict({0}), heads({0})) << "the control: it has ended";
}

TEST_F(Cache, KeepsTheHeadOfAnAttemptWithoutResult) {
  clone(0);
  EXPECT_TRUE(evict({0, {heads_[0]}}).empty());
  EXPECT_EQ(evict({0}), heads({0}));
}

TEST_F(Cache, KeepsWhatAStoreBorrows) {
  {
    const cofferdam::clone::Cloned cloned = clone(0);
    must(cofferdam::make_dirs(state() + "/attempts/kept"));
    must(cofferdam::handoff::AttemptStore::create(state() + "/attempts/kept/store.git", cloned.identity,
                                                  cloned.packs));
  }
  EXPECT_TRUE(evict({0}).empty());
  EXPECT_EQ(must(list_bases(state())).front().borrowers, std::vector<std::string>{"kept"});
  must(cofferdam::remove_tree(state() + "/attempts/kept"));
  EXPECT_EQ(evict({0}), heads({0}));
}

TEST_F(Cache, AStoreThatCannotBeReadKeepsEverything) {
  clone(0);
  must(cofferdam::make_dirs(state() + "/attempts/odd/store.git/objects/info/alternates"));
  EXPECT_FALSE(evict_bases(state(), {0}));
  EXPECT_NE(lab_.sh(state() + "/vault", "ls -A */base"), "");
  must(cofferdam::remove_tree(state() + "/attempts/odd"));
  EXPECT_EQ(evict({0}), heads({0})) << "the control";
}

TEST_F(Cache, LeftoversGoUnlessTheyAreBeingMade) {
  const std::string folder = folder_of(clone(0));
  const std::string parent = folder.substr(0, folder.rfind('/'));
  const auto held = must(Nursery::create(parent));
  must(cofferdam::make_dirs(parent + "/.new-dead00/base/objects"));
  must(cofferdam::make_dirs(parent + "/.gone-dead00/objects"));
  must(cofferdam::make_dirs(lab_.at("elsewhere/kept")));
  lab_.sh(parent, "ln -s ../../../../elsewhere .new-link");
  EXPECT_EQ(must(evict_bases(state(), {1U << 30U})).leftovers, 2U);
  EXPECT_TRUE(is_directory(held.path()));
  EXPECT_TRUE(is_directory(folder));
  EXPECT_TRUE(is_directory(lab_.at("elsewhere/kept"))) << "a link was followed";
  EXPECT_FALSE(exists(parent + "/.new-dead00"));
}

TEST_F(Cache, UseOfWhatIsNotThereIsNotFound) {
  clone(0);
  auto use = use_base(state() + "/vault/none/base/" + heads_[0]);
  ASSERT_FALSE(use);
  EXPECT_EQ(use.error().code, Code::not_found);
}

// Every round finds a whole pack, whatever the evictions in between do.
TEST_F(Cache, ManyUsersAndEvictionsAtOnce) {
  std::atomic<bool> over{false};
  std::atomic<int> evicted{0};
  std::vector<std::string> problems(3);
  std::thread evictor([&] {
    while (!over) {
      auto done = evict_bases(state(), {0});
      if (done) evicted += static_cast<int>(done->removed.size());
    }
  });
  std::vector<std::thread> users;
  for (std::string& problem : problems) {
    users.emplace_back([&] {
      CloneRequest request;
      request.head = heads_[0];
      for (int round = 0; round < 8 && problem.empty(); ++round) {
        auto cloned = clone_head(source_, request, state() + "/vault");
        if (!cloned) problem = cloned.error().line();
        const std::string pack = cloned ? cloned->packs.packs[0] : std::string();
        if (cloned && !(exists(pack) && exists(cofferdam::contract::index_of(pack)))) problem = "gone";
      }
    });
  }
  for (std::thread& user : users) user.join();
  over = true;
  evictor.join();
  for (const std::string& problem : problems) EXPECT_EQ(problem, "");
  EXPECT_GT(evicted.load(), 0) << "the control: there were evictions";
  evict({0});
  EXPECT_EQ(lab_.sh(state() + "/vault", "ls -A */base"), "");
}

}  // namespace
