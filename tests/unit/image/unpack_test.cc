// What the script of the unpack box takes and refuses.
#include <sys/stat.h>

#include "image/tree.h"
#include "unit/image/archives.h"

namespace cofferdam::image {
namespace {

class Unpack : public ::testing::Test {
 protected:
  void SetUp() override {
    auto made = TempDir::create("/tmp", "cofferdam-image-");
    ASSERT_TRUE(made);
    folder_.emplace(*std::move(made));
    ASSERT_TRUE(make_new_dir(tree(), 0755));
  }
  std::string path(const char* name) const { return folder_->path() + "/" + name; }
  std::string tree() const { return path("tree"); }
  Result<std::uint64_t> read(const std::string& kind, const UnpackInput& input = {}) const {
    make_archive(kind, path("archive"));
    return read_archive(path("archive"), path("stream"), input);
  }
  Status unpack() const {
    TRY(const UniqueFd stream, open_file(path("stream"), O_RDONLY));
    return unpack_stream(stream.get(), tree(), {});
  }
  std::string content(const char* name) const {
    auto text = read_file(tree() + "/" + name, 4096);
    return text ? *text : "(none)";
  }

 private:
  std::optional<TempDir> folder_;
};

TEST_F(Unpack, AppliesLayersInOrder) {
  for (const char* kind : {"docker", "oci"}) {
    SCOPED_TRACE(kind);
    ASSERT_TRUE(remove_tree(tree()));
    ASSERT_TRUE(make_new_dir(tree(), 0755));
    const auto dropped = read(kind);
    ASSERT_TRUE(dropped) << dropped.error().line();
    EXPECT_EQ(*dropped, 2U) << "a device and a pipe";
    const Status unpacked = unpack();
    ASSERT_TRUE(unpacked) << unpacked.error().line();
    EXPECT_EQ(content("usr/bin/tool"), "one\n");
    EXPECT_EQ(content("usr/bin/tool2"), "two\n");
    EXPECT_EQ(content("usr/bin/same"), "two\n");
    EXPECT_EQ(content("etc/conf"), "conf\n");
    EXPECT_FALSE(exists(tree() + "/usr/secret")) << "a whiteout";
    EXPECT_FALSE(exists(tree() + "/usr/gone/below")) << "an opaque folder";
    EXPECT_EQ(content("usr/gone/new"), "new\n") << "of the layer that has the whiteout";
    EXPECT_FALSE(exists(tree() + "/dev/null"));
  }
}

TEST_F(Unpack, HasNoModeButTheUsualOnes) {
  ASSERT_TRUE(read("docker"));
  ASSERT_TRUE(unpack());
  const auto mode = [this](const char* name) {
    struct stat info {};
    EXPECT_EQ(::lstat((tree() + "/" + name).c_str(), &info), 0) << name;
    return info.st_mode & 07777U;
  };
  EXPECT_EQ(mode("usr/bin/tool"), 0755U) << "it was set-uid";
  EXPECT_EQ(mode("etc/conf"), 0644U) << "it was closed to others";
  EXPECT_EQ(mode("usr"), 0755U);
}

// Docker's form and OCI's of the same layers are the same image.
TEST_F(Unpack, SameLayersSameManifest) {
  ASSERT_TRUE(read("docker"));
  ASSERT_TRUE(unpack());
  auto first = manifest_of(tree());
  ASSERT_TRUE(first);
  ASSERT_TRUE(remove_tree(tree()));
  ASSERT_TRUE(make_new_dir(tree(), 0755));
  ASSERT_TRUE(read("oci"));
  ASSERT_TRUE(unpack());
  auto second = manifest_of(tree());
  ASSERT_TRUE(second);
  EXPECT_EQ(*first, *second);
}

struct Hostile {
  const char* kind;
  const char* reason;  // a part of it
};
class Refused : public Unpack, public ::testing::WithParamInterface<Hostile> {};

TEST_P(Refused, SaysWhy) {
  UnpackInput input;
  input.bounds = {1U << 20U, 1000, 60};
  input.memory_bytes = 512U << 20U;
  const auto verdict = read(GetParam().kind, input);
  ASSERT_FALSE(verdict);
  EXPECT_EQ(verdict.error().code, Code::denied);
  EXPECT_NE(verdict.error().what.find(GetParam().reason), std::string::npos) << verdict.error().what;
  EXPECT_FALSE(exists("/tmp/escaped"));
}

INSTANTIATE_TEST_SUITE_P(
    Archives, Refused,
    ::testing::Values(
        Hostile{"parent", "leads out of the image"}, Hostile{"absolute", "not a relative name"},
        Hostile{"through-link", "below what is no folder"}, Hostile{"link-then-folder", "a link to no file"},
        Hostile{"hard-link-out", "leads out of the image"}, Hostile{"hard-link-nowhere", "a link to no file"},
        Hostile{"deep", "too deep"}, Hostile{"long-name", "too long"},
        Hostile{"whiteout-parent", "a whiteout of nothing"},
        Hostile{"whiteout-nothing", "a whiteout of nothing"},
        Hostile{"root-is-file", "the root is no folder"}, Hostile{"huge", "a file of 1099511627776 bytes"},
        Hostile{"sparse", "a file of 1099511627776 bytes"}, Hostile{"no-usr", "no folder usr"},
        Hostile{"many", "more than 1000 files"}, Hostile{"many-bytes", "more than 1048576 bytes"},
        Hostile{"bomb", "goes on behind its end"},
        Hostile{"docker-wrong-config", "is not what its digest says"},
        Hostile{"docker-wrong-layer", "is not what its digest"}, Hostile{"docker-two-images", "2 images"},
        Hostile{"docker-missing-layer", "the archive has no"},
        Hostile{"docker-layer-outside", "the archive has no"},
        Hostile{"docker-nested-json", "not a well-formed archive"},
        Hostile{"oci-wrong-blob", "is not what its digest"},
        Hostile{"oci-wrong-diff", "is not what its digest"},
        Hostile{"oci-wrong-manifest", "is not what its digest says"},
        Hostile{"empty", "not a well-formed archive"}, Hostile{"noise", "not a well-formed archive"},
        Hostile{"cut", "not a well-formed archive"},
        Hostile{"other-tar", "neither a docker save archive nor"}),
    [](const auto& param) {
      std::string name = param.param.kind;
      for (char& letter : name) letter = letter == '-' ? '_' : letter;
      return name;
    });

// The control: within the same bounds a good one is taken.
TEST_F(Unpack, TheSameBoundsTakeAGoodOne) {
  UnpackInput input;
  input.bounds = {1U << 20U, 1000, 60};
  input.memory_bytes = 512U << 20U;
  EXPECT_TRUE(read("docker", input));
  EXPECT_TRUE(read("oci", input));
}

TEST(Verdict, IsRead) {
  EXPECT_EQ(*read_verdict("ok 12\n"), 12U);
  for (const char* text : {"", "ok", "ok ", "ok x", "ok 1\nok 2", "OK 1", "ok 99999999999999999999"}) {
    EXPECT_FALSE(read_verdict(text)) << text;
  }
}

}  // namespace
}  // namespace cofferdam::image
