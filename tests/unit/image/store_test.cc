// Images in a state folder: what they are named by, and that no change of them goes unseen.
#include "image/store.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <functional>
#include <optional>

#include "base/file.h"
#include "base/sha256.h"

namespace cofferdam::image {
namespace {

void put(const std::string& path, const std::string& text, mode_t mode = 0644) {
  ASSERT_TRUE(write_file_atomic(path, text, mode));
}

class Store : public ::testing::Test {
 protected:
  void SetUp() override {
    auto made = TempDir::create("/tmp", "cofferdam-store-");
    ASSERT_TRUE(made);
    folder_.emplace(*std::move(made));
  }
  std::string state() const { return folder_->path(); }
  std::string tree(const std::string& id) const { return state() + "/images/" + id.substr(7) + "/tree"; }
  std::string make(const std::string& tool = "#!/bin/sh\n") const {
    auto image = NewImage::create(state());
    EXPECT_TRUE(image);
    EXPECT_TRUE(make_dirs(image->tree() + "/usr/bin", 0755));
    put(image->tree() + "/usr/bin/tool", tool, 0755);
    put(image->tree() + "/usr/data", "data", 0644);
    EXPECT_EQ(::symlink("usr/bin", (image->tree() + "/bin").c_str()), 0);
    auto id = image->finish("a test");
    EXPECT_TRUE(id);
    return *id;
  }

 private:
  std::optional<TempDir> folder_;
};

TEST_F(Store, NameIsTheDigestOfTheCanonicalManifest) {
  const std::string id = make();
  auto manifest = manifest_of(tree(id));
  ASSERT_TRUE(manifest);
  EXPECT_EQ(*manifest, "cofferdam-image/1\nl - - - bin usr/bin\nd 755 - - usr\nd 755 - - usr/bin\nf 755 10 " +
                           sha256_hex("#!/bin/sh\n") + " usr/bin/tool\nf 644 4 " + sha256_hex("data") +
                           " usr/data\n");
  EXPECT_EQ(id, "sha256:" + sha256_hex(*manifest));
  EXPECT_EQ(make(), id) << "the same content is the same image, whenever it was made";
  EXPECT_NE(make("#!/bin/bash\n"), id);
  EXPECT_EQ(list_images(state())->size(), 2U);
}

TEST_F(Store, ManifestNamesOddBytes) {
  const std::string folder = state() + "/odd";
  ASSERT_TRUE(make_dirs(folder, 0755));
  put(folder + "/a b\n%\xff", "");
  put(folder + "/a-b", "");
  auto manifest = manifest_of(folder);
  ASSERT_TRUE(manifest);
  EXPECT_NE(manifest->find(" a%20b%0A%25%FF\n"), std::string::npos) << *manifest;
  ASSERT_EQ(::mkfifo((folder + "/pipe").c_str(), 0600), 0);
  EXPECT_FALSE(manifest_of(folder));
}

struct Tampering {
  const char* name;
  std::function<void(const std::string&)> act;
};

// With the time of the last change put back, where that can be.
void edit_and_restore(const std::string& path, const std::string& text) {
  struct stat info {};
  ASSERT_EQ(::stat(path.c_str(), &info), 0);
  const UniqueFd file = *open_file(path, O_WRONLY | O_TRUNC);
  ASSERT_EQ(::write(file.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
  const struct timespec times[2] = {info.st_atim, info.st_mtim};
  ASSERT_EQ(::futimens(file.get(), times), 0);
}

TEST_F(Store, AnyChangeIsFound) {
  const Tampering cases[] = {
      {"content of the same size, time put back",
       [](const std::string& tree) { edit_and_restore(tree + "/usr/data", "DATA"); }},
      {"one more file", [](const std::string& tree) { put(tree + "/usr/more", ""); }},
      {"one file less", [](const std::string& tree) { ::unlink((tree + "/usr/data").c_str()); }},
      {"mode of a file", [](const std::string& tree) { ::chmod((tree + "/usr/data").c_str(), 0755); }},
      {"set-id bit", [](const std::string& tree) { ::chmod((tree + "/usr/bin/tool").c_str(), 04755); }},
      {"mode of a folder", [](const std::string& tree) { ::chmod((tree + "/usr").c_str(), 0777); }},
      {"text of a link",
       [](const std::string& tree) {
         ::unlink((tree + "/bin").c_str());
         ASSERT_EQ(::symlink("usr/BIN", (tree + "/bin").c_str()), 0);
       }},
      {"a file in the place of a folder",
       [](const std::string& tree) {
         ASSERT_TRUE(remove_tree(tree + "/usr/bin"));
         put(tree + "/usr/bin", "");
       }},
      {"a pipe", [](const std::string& tree) { ASSERT_EQ(::mkfifo((tree + "/usr/p").c_str(), 0644), 0); }},
      {"the tree renamed away",
       [](const std::string& tree) { ::rename(tree.c_str(), (tree + "x").c_str()); }},
  };
  for (const Tampering& one : cases) {
    SCOPED_TRACE(one.name);
    const std::string id = make();
    EXPECT_TRUE(use_image(state(), id)) << "the control";
    EXPECT_TRUE(verify_image(state(), id)) << "the control";
    one.act(tree(id));
    const auto used = use_image(state(), id);
    ASSERT_FALSE(used);
    EXPECT_EQ(used.error().code, Code::denied);
    EXPECT_FALSE(verify_image(state(), id));
    ASSERT_TRUE(remove_image(state(), id));
  }
}

TEST_F(Store, AMessageNamesWhatHasChanged) {
  const std::string id = make();
  edit_and_restore(tree(id) + "/usr/data", "DATA");
  const auto used = use_image(state(), id);
  ASSERT_FALSE(used);
  EXPECT_NE(used.error().what.find("usr/data"), std::string::npos) << used.error().line();
}

TEST_F(Store, AManifestThatWasWrittenAnewIsNoWayAround) {
  const std::string id = make();
  edit_and_restore(tree(id) + "/usr/data", "DATA");
  put(state() + "/images/" + id.substr(7) + "/manifest", *manifest_of(tree(id)));
  EXPECT_FALSE(use_image(state(), id));
}

// A copy from a backup has other inodes: it is compared byte by byte, and taken from then on.
TEST_F(Store, TheSameContentElsewhereIsVerifiedAndTaken) {
  const std::string id = make();
  const std::string before = *read_file(state() + "/images/" + id.substr(7) + "/stat", 128);
  const std::string file = tree(id) + "/usr/data";
  put(file, "data", 0644);  // a new inode
  ASSERT_TRUE(use_image(state(), id));
  EXPECT_NE(*read_file(state() + "/images/" + id.substr(7) + "/stat", 128), before);
}

TEST_F(Store, OneInUseIsNotRemoved) {
  const std::string id = make();
  {
    auto used = use_image(state(), id);
    ASSERT_TRUE(used);
    EXPECT_TRUE(list_images(state())->front().in_use);
    const Status removed = remove_image(state(), id);
    ASSERT_FALSE(removed);
    EXPECT_EQ(removed.error().code, Code::conflict);
  }
  EXPECT_TRUE(remove_image(state(), id)) << "the control";
  EXPECT_TRUE(list_dir(state() + "/images")->empty());
  EXPECT_EQ(use_image(state(), id).error().code, Code::not_found);
}

TEST_F(Store, IsFoundByItsFirstDigits) {
  const std::string id = make();
  EXPECT_EQ(*find_image(state(), id), id);
  EXPECT_EQ(*find_image(state(), id.substr(7, 8)), id);
  EXPECT_EQ(*find_image(state(), id.substr(0, 15)), id);
  for (const std::string& text : {id.substr(7, 7), std::string("../../etc"), std::string(), id + "0"}) {
    EXPECT_EQ(find_image(state(), text).error().code, Code::usage) << text;
  }
  EXPECT_EQ(find_image(state(), "00000000").error().code, Code::not_found);
}

TEST_F(Store, LeftoversGo) {
  ASSERT_TRUE(make_dirs(state() + "/images/.new-abc"));
  ASSERT_TRUE(make_dirs(state() + "/images/.gone-abc"));
  const auto busy = NewImage::create(state());
  ASSERT_TRUE(busy);
  ASSERT_TRUE(remove_image_leftovers(state()));
  EXPECT_EQ(list_dir(state() + "/images")->size(), 1U) << "the one that is being made";
}

}  // namespace
}  // namespace cofferdam::image
