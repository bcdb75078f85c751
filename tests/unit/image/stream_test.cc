// The reader of what comes out of the unpack box, which could be anything.
#include "image/stream.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <optional>
#include <random>

#include "base/fd.h"
#include "base/file.h"

namespace cofferdam::image {
namespace {

using std::string_literals::operator""s;

const std::string kHead = "cofferdam-tree/1\0"s;

class Stream : public ::testing::Test {
 protected:
  void SetUp() override {
    auto made = TempDir::create("/tmp", "cofferdam-stream-");
    ASSERT_TRUE(made);
    folder_.emplace(*std::move(made));
    ASSERT_TRUE(make_new_dir(tree(), 0755));
    ASSERT_TRUE(make_new_dir(folder_->path() + "/outside", 0755));
  }
  std::string tree() const { return folder_->path() + "/tree"; }
  Status unpack(const std::string& bytes, const TreeBounds& bounds = {}) const {
    TRY(const UniqueFd file, make_sealed_memfd("stream", bytes));
    return unpack_stream(file.get(), tree(), bounds);
  }
  // Nothing beside the tree was touched.
  void expect_inside() const {
    EXPECT_EQ(list_dir(folder_->path())->size(), 2U);
    EXPECT_TRUE(list_dir(folder_->path() + "/outside")->empty());
  }

 private:
  std::optional<TempDir> folder_;
};

TEST_F(Stream, MakesATree) {
  ASSERT_TRUE(unpack(kHead + "du\0d"s + "u/v\0f3\0u/a\0abcx1\0u/b\0zhu/c\0u/a\0lu/l\0/etc/passwd\0e"s));
  EXPECT_EQ(*read_file(tree() + "/u/a", 10), "abc");
  EXPECT_EQ(*read_file(tree() + "/u/c", 10), "abc");
  EXPECT_EQ(*read_file(tree() + "/u/b", 10), "z");
  expect_inside();
}

TEST_F(Stream, RefusesEverythingElse) {
  const std::string cases[] = {
      "",
      "cofferdam-tree/2\0e"s,
      kHead,
      kHead + "q",
      kHead + "ee",
      kHead + "d\0e"s,
      kHead + "d/\0e"s,
      kHead + "d/tmp\0e"s,
      kHead + "d..\0e"s,
      kHead + "d.\0e"s,
      kHead + "du\0du/../w\0e"s,
      kHead + "du//v\0e"s,
      kHead + "du/\0e"s,
      kHead + "du/v\0e"s,
      kHead + "du\0du\0e"s,
      kHead + "lu\0../outside\0f1\0u/a\0xe"s,
      kHead + "lu\0../outside\0du/v\0e"s,
      kHead + "lu\0../outside/made\0f1\0u\0xe"s,
      kHead + "lu\0../outside\0hv\0u\0e"s,
      kHead + "du\0hv\0u\0e"s,
      kHead + "hv\0../outside\0e"s,
      kHead + "lu\0\0e"s,
      kHead + "f\0a\0e"s,
      kHead + "f-1\0a\0e"s,
      kHead + "f2\0a\0x"s,
      kHead + "f9999999999999999\0a\0x"s,
      kHead + "d" + std::string(300, 'n') + "\0e"s,
      kHead + "d" + std::string(5000, 'n'),
      kHead + "du",
  };
  for (const std::string& bytes : cases) {
    ASSERT_TRUE(remove_tree(tree()));
    ASSERT_TRUE(make_new_dir(tree(), 0755));
    EXPECT_FALSE(unpack(bytes)) << bytes;
    expect_inside();
  }
}

TEST_F(Stream, StopsAtItsBounds) {
  const std::string two = kHead + "f3\0a\0abcf3\0b\0abce"s;
  auto bytes = unpack(two, {5, 10, 4});
  ASSERT_FALSE(bytes);
  EXPECT_EQ(bytes.error().code, Code::exhausted);
  ASSERT_TRUE(remove_tree(tree()));
  ASSERT_TRUE(make_new_dir(tree(), 0755));
  auto entries = unpack(two, {6, 1, 4});
  ASSERT_FALSE(entries);
  EXPECT_EQ(entries.error().code, Code::exhausted);
  ASSERT_TRUE(remove_tree(tree()));
  ASSERT_TRUE(make_new_dir(tree(), 0755));
  EXPECT_TRUE(unpack(two, {6, 2, 4})) << "the control";
  EXPECT_FALSE(unpack(kHead + "dc\0dc/d\0dc/d/e\0e"s, {6, 5, 2}));
}

TEST_F(Stream, RandomEditsStayInside) {
  const std::string good = kHead + "du\0f3\0u/a\0abclu/l\0../../outside\0hu/c\0u/a\0e"s;
  std::mt19937 random(20261201);  // NOLINT(cert-msc32-c,cert-msc51-cpp): the same every time
  for (int round = 0; round < 500; ++round) {
    std::string bytes = good;
    for (int edit = 0; edit < 3; ++edit) bytes[random() % bytes.size()] = "./\0ulhdfe1"[random() % 11];
    (void)unpack(bytes).has_value();
    expect_inside();
    ASSERT_TRUE(remove_tree(tree()));
    ASSERT_TRUE(make_new_dir(tree(), 0755));
  }
}

}  // namespace
}  // namespace cofferdam::image
