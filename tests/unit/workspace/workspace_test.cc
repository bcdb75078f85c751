// What is decided about a storage, without making one.
#include <gtest/gtest.h>

#include <algorithm>

#include "base/text.h"
#include "workspace/image.h"
#include "workspace/metadata.h"
#include "workspace/plan_keeper.h"
#include "workspace/room.h"

namespace cofferdam::workspace {
namespace {

std::uint64_t inodes_of(std::uint64_t bytes, std::uint64_t inodes) {
  const std::vector<std::string> argv = plan_mke2fs(bytes, inodes, {1, 1}, "file");
  const auto at = std::find(argv.begin(), argv.end(), "-N");
  return at == argv.end() ? 0 : std::stoull(*(at + 1));
}

TEST(Image, NeverHasMoreInodesThanAsked) {
  for (const std::uint64_t bytes : {4ULL << 20U, 33554432ULL, 1ULL << 30U, 20ULL << 30U}) {
    for (const std::uint64_t inodes : {200ULL, 1000ULL, 60'000ULL, 500'000ULL}) {
      const std::uint64_t made = inodes_of(bytes, inodes);
      EXPECT_LE(made, std::max<std::uint64_t>(inodes, (bytes >> 27U) * 16 + 16)) << bytes << " " << inodes;
      EXPECT_GT(made, 0U);
    }
  }
  EXPECT_EQ(inodes_of(2ULL << 30U, 500'000), 499'968U) << "16 groups of whole blocks of inodes";
}

TEST(Room, LeavesSomeToTheHost) {
  const std::uint64_t gib = 1ULL << 30U;
  EXPECT_TRUE(fits({100 * gib, 10 * gib}, 9 * gib, gib));
  EXPECT_FALSE(fits({100 * gib, 10 * gib}, 9 * gib + 1, gib));
  EXPECT_TRUE(fits({10 * gib, gib}, gib / 2, gib)) << "a twentieth of a small one";
  EXPECT_FALSE(fits({10 * gib, gib / 4}, 0, gib));
  EXPECT_FALSE(fits({10 * gib, gib}, UINT64_MAX, gib));
}

TEST(Metadata, IsCompleteAndOurs) {
  contract::CloneIdentity clone;
  clone.base = std::string(64, 'b');
  clone.object_format = "sha256";
  const std::vector<MetadataFile> files = plan_metadata(clone, "cofferdam/x", {"one", "two"});
  ASSERT_EQ(files.size(), 4U);
  EXPECT_NE(files[0].content.find("objectformat = sha256"), std::string::npos);
  EXPECT_NE(files[0].content.find("hooksPath = /dev/null"), std::string::npos);
  EXPECT_EQ(files[1], (MetadataFile{"HEAD", "ref: refs/heads/cofferdam/x\n"}));
  EXPECT_EQ(files[2], (MetadataFile{"refs/heads/cofferdam/x", clone.base + "\n"}));
  EXPECT_EQ(files[3], (MetadataFile{"shallow", "one\ntwo\n"}));
  EXPECT_EQ(plan_metadata(clone, "x", {}).size(), 3U) << "no empty shallow file";
}

// The cached tree and the base packs are never writable; what is written has a bound.
TEST(PlanKeeper, MountsWhatTheFormSays) {
  KeeperInput input;
  input.work_bytes = 1U << 20U;
  input.work_inodes = 100;
  input.objects = {"/vault/objects"};
  input.tree = {"/vault/tree"};
  const auto has = [](const plan::Plan& plan, plan::OpCode code, const std::string& from,
                      const std::string& to) {
    return std::any_of(plan.ops.begin(), plan.ops.end(),
                       [&](const plan::Op& op) { return op.code == code && op.a == from && op.b == to; });
  };
  input.form = TreeForm::overlay;
  plan::Plan plan = plan_keeper(input);
  EXPECT_TRUE(has(plan, plan::OpCode::tmpfs, "", "/work"));
  EXPECT_TRUE(has(plan, plan::OpCode::work_tree, "/host/vault/tree", "/work/tree"));
  EXPECT_TRUE(has(plan, plan::OpCode::overlay, "/host/vault/objects", "/meta/git/objects"));
  EXPECT_FALSE(has(plan, plan::OpCode::bind, "/host/vault/tree", "/work/tree"));
  input.form = TreeForm::read_only;
  plan = plan_keeper(input);
  EXPECT_FALSE(has(plan, plan::OpCode::tmpfs, "", "/work")) << "nothing can be written";
  EXPECT_TRUE(has(plan, plan::OpCode::overlay, "/host/vault/tree", "/work/tree"));
  input.form = TreeForm::checkout;
  input.disk = {"/slots/1"};
  plan = plan_keeper(input);
  EXPECT_TRUE(has(plan, plan::OpCode::bind, "/host/slots/1", "/work"));
  EXPECT_FALSE(has(plan, plan::OpCode::tmpfs, "", "/work"));
}

}  // namespace
}  // namespace cofferdam::workspace
