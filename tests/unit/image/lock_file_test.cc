// Lists of packages, what apt prints about them, and the list that is shipped.
#include "image/lock_file.h"

#include <gtest/gtest.h>

#include "base/file.h"
#include "base/text.h"
#include "contract/json.h"
#include "image/apt.h"

namespace cofferdam::image {
namespace {

const std::string kDigest(64, 'a');

TEST(LockFile, IsReadStrictly) {
  const std::string good =
      "cofferdam-image-lock/1\n# a comment\n\nwant bash\nwithout perl\nlink usr/bin/awk mawk\nagent @a/b\n"
      "package zlib1g 1:1.2.13.dfsg-1 amd64 " +
      kDigest + "\npinned @a/b 1.0 sha512-x " + kDigest + "\n";
  auto lock = parse_lock(good, "list");
  ASSERT_TRUE(lock) << lock.error().line();
  EXPECT_EQ(lock->wanted, std::vector<std::string>{"bash"});
  EXPECT_EQ(lock->packages.front(), (LockedPackage{"zlib1g", "1:1.2.13.dfsg-1", "amd64", kDigest}));
  for (const std::string& line :
       {std::string("want"), std::string("want --option"), std::string("want a b"), std::string("want A"),
        std::string("take a"), std::string("link /usr/bin/awk mawk"), std::string("link usr/../x y"),
        std::string("agent ../x"), std::string("agent /x"), "package a 1 amd64 " + kDigest.substr(1),
        "package -o 1 amd64 " + kDigest, "package a 1;x amd64 " + kDigest,
        std::string("package a 1 amd64")}) {
    const auto refused = parse_lock("cofferdam-image-lock/1\n" + line + "\n", "list");
    ASSERT_FALSE(refused) << line;
    EXPECT_NE(refused.error().what.find("list:2"), std::string::npos) << refused.error().what;
  }
  EXPECT_FALSE(parse_lock("", "list"));
  EXPECT_FALSE(parse_lock("want bash\n", "list"));
}

TEST(LockFile, PinsAreWrittenBehindTheHead) {
  const std::string text = "cofferdam-image-lock/1\nwant bash\npackage old 1 amd64 " + kDigest + "\n";
  LockFile lock;
  lock.packages = {{"bash", "5.2", "amd64", kDigest}};
  lock.pinned = {{"@a/b", "1", "sha512-x", kDigest}};
  EXPECT_EQ(with_pins(text, lock), "cofferdam-image-lock/1\nwant bash\npackage bash 5.2 amd64 " + kDigest +
                                       "\npinned @a/b 1 sha512-x " + kDigest + "\n");
}

TEST(Apt, WhatItPrintsIsRead) {
  const auto packages = simulated(
      "Reading package lists...\nInst libc6 (2.36-9+deb12u14 Debian:12.15/oldstable [amd64]) []\n"
      "Inst ca-certificates (20250419~deb12u2 Debian-Security:12/oldstable-security, Debian:12 [all])\nConf "
      "libc6 (2)\n");
  ASSERT_EQ(packages.size(), 2U);
  EXPECT_EQ(packages[0], (LockedPackage{"libc6", "2.36-9+deb12u14", "amd64", ""}));
  EXPECT_EQ(packages[1], (LockedPackage{"ca-certificates", "20250419~deb12u2", "all", ""}));
  const char* shown = "Package: a\nVersion: 1\nSHA256: one\n\nPackage: b\nVersion: 2\nSHA256: two\n";
  EXPECT_EQ(shown_digest(shown, {"b", "2", "", ""}), "two");
  EXPECT_EQ(shown_digest(shown, {"b", "1", "", ""}), "");
  EXPECT_EQ(missing_package("Version '1' for 'git' was not found"), "git");
  EXPECT_EQ(missing_package("Version '1' for 'git:amd64' was not found"), "git");
  EXPECT_EQ(missing_package("Unable to locate package nosuch:amd64"), "nosuch");
  EXPECT_EQ(missing_package("something else"), "");
  EXPECT_EQ(candidate_version("git:\n  Installed: (none)\n  Candidate: 1:2.39.5\n"), "1:2.39.5");
  EXPECT_EQ(candidate_version("git:\n  Candidate: (none)\n"), "");
}

// The list that is shipped pins the agents that agents/package-lock.json pins, and stays small.
TEST(ShippedList, PinsTheAgentsOfThePackageLock) {
  const std::string root = COFFERDAM_SOURCE_DIR;
  auto text = read_file(root + "/images/debian12.lock", kMaxLockBytes);
  ASSERT_TRUE(text);
  auto lock = parse_lock(*text, "debian12.lock");
  ASSERT_TRUE(lock) << lock.error().line();
  EXPECT_LE(lock->packages.size(), 60U);
  EXPECT_EQ(lock->pinned.size(), lock->agents.size());
  auto npm = read_file(root + "/agents/package-lock.json", 1U << 20U);
  ASSERT_TRUE(npm);
  auto json = contract::parse_json(*npm, 1U << 20U);
  ASSERT_TRUE(json);
  for (const LockedAgent& agent : lock->pinned) {
    const contract::Json& entry = (*json)["packages"]["node_modules/" + agent.name];
    EXPECT_EQ(entry.value("version", ""), agent.version);
    EXPECT_EQ(entry.value("integrity", ""), agent.integrity);
  }
  for (const std::string& wanted : lock->wanted) {
    const bool there = std::any_of(lock->packages.begin(), lock->packages.end(),
                                   [&](const LockedPackage& one) { return one.name == wanted; });
    EXPECT_TRUE(there) << wanted;
  }
}

}  // namespace
}  // namespace cofferdam::image
