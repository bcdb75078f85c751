#include "base/file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <optional>

#include "base/fd.h"
#include "base/io.h"

namespace cofferdam {
namespace {

class Files : public ::testing::Test {
 protected:
  void SetUp() override {
    auto made = TempDir::create(::testing::TempDir(), "files-");
    ASSERT_TRUE(made) << made.error().line();
    dir_.emplace(*std::move(made));
  }
  std::string at(const std::string& name) const { return dir_->path() + "/" + name; }

  std::optional<TempDir> dir_;
};

TEST_F(Files, AtomicWriteReplacesAndReadsBack) {
  ASSERT_TRUE(write_file_atomic(at("f"), "one", 0640));
  ASSERT_TRUE(write_file_atomic(at("f"), std::string("two\0", 4)));
  auto bytes = read_file(at("f"), 4);
  ASSERT_TRUE(bytes);
  EXPECT_EQ(*bytes, std::string("two\0", 4));
  auto names = list_dir(dir_->path());
  ASSERT_TRUE(names);
  EXPECT_EQ(*names, std::vector<std::string>{"f"});
}

TEST_F(Files, ReadingIsBounded) {
  ASSERT_TRUE(write_file_atomic(at("f"), "12345"));
  auto bytes = read_file(at("f"), 4);
  ASSERT_FALSE(bytes);
  EXPECT_EQ(bytes.error().code, Code::exhausted);
  auto missing = read_file(at("missing"), 4);
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, Code::not_found);
}

TEST_F(Files, FoldersAreMadeWithTheirModes) {
  ASSERT_TRUE(make_dirs(at("a/b/c")));
  ASSERT_TRUE(make_dirs(at("a/b/c")));
  struct stat info {};
  ASSERT_EQ(::stat(at("a/b").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777U, 0700U);
  ASSERT_TRUE(make_new_dir(at("new")));
  auto again = make_new_dir(at("new"));
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, Code::conflict);
  ASSERT_TRUE(write_file_atomic(at("file"), ""));
  EXPECT_FALSE(make_dirs(at("file/x")));
  EXPECT_FALSE(make_dirs(at("file")));
}

TEST_F(Files, RemovingNeverFollowsLinks) {
  ASSERT_TRUE(make_dirs(at("keep")));
  ASSERT_TRUE(write_file_atomic(at("keep/precious"), "x"));
  ASSERT_TRUE(make_dirs(at("tree/deep/er")));
  ASSERT_TRUE(write_file_atomic(at("tree/deep/er/f"), "x"));
  ASSERT_EQ(::symlink(at("keep").c_str(), at("tree/link").c_str()), 0);
  ASSERT_EQ(::symlink("/nonexistent", at("tree/deep/dangling").c_str()), 0);
  ASSERT_TRUE(remove_tree(at("tree")));
  EXPECT_FALSE(exists(at("tree")));
  EXPECT_TRUE(exists(at("keep/precious")));
  ASSERT_EQ(::symlink(at("keep").c_str(), at("link").c_str()), 0);
  ASSERT_TRUE(remove_tree(at("link")));
  EXPECT_TRUE(exists(at("keep/precious")));
  EXPECT_TRUE(remove_tree(at("missing")));
}

TEST_F(Files, TempDirIsRemovedOnceAndMoves) {
  std::string path;
  {
    auto made = TempDir::create(dir_->path(), "t-");
    ASSERT_TRUE(made);
    TempDir moved = *std::move(made);
    path = moved.path();
    ASSERT_TRUE(write_file_atomic(path + "/f", "x"));
    EXPECT_TRUE(is_directory(path));
  }
  EXPECT_FALSE(exists(path));
}

TEST_F(Files, DescriptorsAreCloseOnExec) {
  ASSERT_TRUE(write_file_atomic(at("f"), "x"));
  auto file = open_file(at("f"), O_RDONLY);
  auto pipe = make_pipe();
  auto pair = make_seqpacket_pair();
  ASSERT_TRUE(file && pipe && pair);
  auto copy = duplicate(file->get());
  auto memory = make_sealed_memfd("test", "x");
  ASSERT_TRUE(copy && memory);
  for (int fd : {file->get(), pipe->read.get(), pipe->write.get(), pair->ours.get(), pair->theirs.get(),
                 copy->get(), memory->get()}) {
    EXPECT_EQ(::fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC) << fd;
  }
}

TEST_F(Files, SealedMemoryCannotBeChanged) {
  auto memory = make_sealed_memfd("test", "plan");
  ASSERT_TRUE(memory);
  EXPECT_FALSE(write_all(memory->get(), "x"));
  EXPECT_NE(::ftruncate(memory->get(), 0), 0);
  EXPECT_NE(::ftruncate(memory->get(), 100), 0);
  auto bytes = read_to_end(memory->get(), 100);
  ASSERT_TRUE(bytes);
  EXPECT_EQ(*bytes, "plan");
}

TEST(UniqueFd, OwnsExactlyOnce) {
  auto pipe = make_pipe();
  ASSERT_TRUE(pipe);
  const int number = pipe->read.get();
  UniqueFd moved = std::move(pipe->read);
  EXPECT_EQ(moved.get(), number);
  moved = std::move(pipe->write);  // closes the read end
  EXPECT_EQ(::fcntl(number, F_GETFD), -1);
  const int kept = moved.release();
  EXPECT_FALSE(moved.valid());
  EXPECT_EQ(::close(kept), 0);
}

}  // namespace
}  // namespace cofferdam
