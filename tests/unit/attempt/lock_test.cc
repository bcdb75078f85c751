#include "attempt/lock.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "base/file.h"

namespace cofferdam::attempt {
namespace {

class LockTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto made = TempDir::create(::testing::TempDir(), "lock.");
    ASSERT_TRUE(made) << made.error().line();
    state_.emplace(*std::move(made));
  }
  const std::string& state() const { return state_->path(); }
  std::optional<TempDir> state_;
};

TEST_F(LockTest, OneHoldsIt) {
  auto first = AttemptLock::try_take(state(), "a");
  ASSERT_TRUE(first && first->has_value());
  EXPECT_EQ((*first)->folder(), state() + "/attempts/a");
  auto second = AttemptLock::try_take(state(), "a");
  ASSERT_TRUE(second);
  EXPECT_FALSE(second->has_value());
  auto held = AttemptLock::is_held(state(), "a");
  ASSERT_TRUE(held);
  EXPECT_TRUE(*held);
  auto other = AttemptLock::try_take(state(), "b");
  ASSERT_TRUE(other);
  EXPECT_TRUE(other->has_value()) << "of another id";
}

TEST_F(LockTest, LooksWithoutMakingAnything) {
  auto held = AttemptLock::is_held(state(), "a");
  ASSERT_TRUE(held);
  EXPECT_FALSE(*held);
  EXPECT_FALSE(exists(state() + "/attempts"));
}

TEST_F(LockTest, LeavesTheFolderOnlyIfSomethingIsInIt) {
  {
    auto lock = AttemptLock::try_take(state(), "empty");
    ASSERT_TRUE(lock && lock->has_value());
  }
  EXPECT_FALSE(exists(state() + "/attempts/empty"));
  {
    auto lock = AttemptLock::try_take(state(), "full");
    ASSERT_TRUE(lock && lock->has_value());
    ASSERT_TRUE(write_file_atomic((*lock)->folder() + "/stdout", "x"));
  }
  EXPECT_TRUE(exists(state() + "/attempts/full/stdout"));
  EXPECT_FALSE(exists(state() + "/attempts/full/lock"));
}

TEST_F(LockTest, AnAbandonedLockFileIsFree) {
  ASSERT_TRUE(make_dirs(state() + "/attempts/a"));
  ASSERT_TRUE(write_file_atomic(state() + "/attempts/a/lock", ""));
  auto held = AttemptLock::is_held(state(), "a");
  ASSERT_TRUE(held);
  EXPECT_FALSE(*held);
  auto lock = AttemptLock::try_take(state(), "a");
  ASSERT_TRUE(lock);
  EXPECT_TRUE(lock->has_value());
}

TEST_F(LockTest, ASymbolicLinkIsNotFollowed) {
  ASSERT_TRUE(make_dirs(state() + "/attempts/a"));
  ASSERT_EQ(::symlink((state() + "/elsewhere").c_str(), (state() + "/attempts/a/lock").c_str()), 0);
  EXPECT_FALSE(AttemptLock::try_take(state(), "a"));
  EXPECT_FALSE(exists(state() + "/elsewhere"));
}

}  // namespace
}  // namespace cofferdam::attempt
