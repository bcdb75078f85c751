// The collect box: what is verified reaches the store, everything else is refused with its reason.
#include "handoff/collect.h"

#include <gtest/gtest.h>

#include <set>

#include "unit/handoff/lab.h"

namespace {

using cofferdam::Code;
using cofferdam::handoff::CollectInput;
using lab::Lab;
using lab::must;

constexpr const char* kBase =
    "printf one > a.txt; mkdir d; printf two > d/b.txt; ln -s a.txt l; printf x > m";

std::string git_in_out(const Lab& lab) {
  return "export GIT_DIR=" + lab.at("metadata") + " GIT_OBJECT_DIRECTORY=" + lab.at("out/objects") +
         " GIT_ALTERNATE_OBJECT_DIRECTORIES=" + lab.at("metadata/objects") + "; mkdir -p " +
         lab.at("out/objects") + " " + lab.at("scratch") + "\n";
}

// A hostile snapshot box: `script` makes objects and prints the tree id; all of them are packed without
// checks.
std::string forge(const Lab& lab, const std::string& script) {
  const std::string tree = lab.sh(lab.at("."), git_in_out(lab) + script);
  lab.sh(lab.at("out"), git_in_out(lab) +
                            "find objects -type f -path '*/[0-9a-f][0-9a-f]/*' -printf '%P\\n' | tr -d / | "
                            "git pack-objects --stdout -q > result.pack");
  return tree;
}

cofferdam::Result<cofferdam::handoff::Collected> collect(const Lab& lab, const std::string& tree,
                                                         CollectInput input = {}) {
  input.tree = tree;
  return lab.collect(lab.make_store("a"), input);
}

TEST(Collect, VerifiedPackReachesTheStoreWithTheListOfChanges) {
  Lab lab;
  lab.make_source(kBase);
  lab.prepare();
  lab.edit("printf new > \"$(printf 'new\\nname')\"; rm m; printf changed > d/b.txt; rm l; printf file > l");
  auto snapshot = must(lab.snapshot());
  auto store = lab.make_store("a");
  CollectInput input;
  input.tree = snapshot.tree;
  auto collected = must(lab.collect(store, input));
  EXPECT_EQ(collected.objects, snapshot.objects);
  EXPECT_EQ(collected.changes.size(), 4U);
  std::string shown;
  for (const auto& [file, mode, id] : collected.changes) shown += file.status + " " + file.path + ";";
  EXPECT_EQ(shown, "modified d/b.txt;type-changed l;deleted m;added new\nname;");
  const std::string in_store = "GIT_DIR=" + store.path() + " git ";
  EXPECT_EQ(lab.sh(lab.at("."), in_store + "cat-file -p " + snapshot.tree + ":l"), "file");
  EXPECT_EQ(lab.sh(store.path(), "ls objects/pack | wc -l; ls -d incoming-* 2>/dev/null | wc -l"), "2\n0");
  lab.sh(lab.at("."), in_store + "fsck --strict --no-dangling");
}

TEST(Collect, RefusesWhatGitsOwnChecksRefuse) {
  const std::string blob = "b=$(printf evil | git hash-object -w --stdin)\n";
  struct {
    const char* name;
    std::string script;
  } const cases[] = {
      {"dot_git_folder", blob + "t=$(printf '100644 blob %s\\tconfig\\n' $b | git mktree)\n"
                                "printf '040000 tree %s\\t.git\\n' $t | git mktree"},
      {"dot_git_alias", blob + "t=$(printf '100644 blob %s\\tconfig\\n' $b | git mktree)\n"
                               "printf '040000 tree %s\\t.GIT\\n' $t | git mktree"},
      {"dot_dot", blob + "printf '100644 ..\\000%b' \"$(printf $b | sed 's/../\\\\x&/g')\" > raw; "
                         "git hash-object -w --literally -t tree raw"},
      {"slash_in_name",
       blob +
           "bash -c \"printf '100644 a/b\\\\0%b' \\\"\\$(printf $b | sed 's/../\\\\\\\\x&/g')\\\"\" > raw; "
           "git hash-object -w --literally -t tree raw"},
      {"gitmodules_link",
       "b=$(printf a.txt | git hash-object -w --stdin)\n"
       "printf '120000 blob %s\\t.gitmodules\\n' $b | git mktree"},
      {"gitmodules_option",
       "b=$(printf '[submodule \"x\"]\\n\\tpath = x\\n\\turl = --upload-pack=evil\\n' | "
       "git hash-object -w --stdin)\n"
       "printf '100644 blob %s\\t.gitmodules\\n' $b | git mktree"},
      {"missing_blob",
       "printf '100644 blob 1234567890123456789012345678901234567890\\tx\\n' | git mktree --missing"},
  };
  Lab lab;
  lab.make_source(kBase);
  lab.prepare();
  for (const auto& one : cases) {
    SCOPED_TRACE(one.name);
    lab.sh(lab.at("."), "rm -rf out scratch open.git attempts; mkdir out scratch");
    const std::string tree = forge(lab, one.script);
    // The control: the same bytes are taken by an index-pack without checks.
    lab.sh(lab.at("."),
           "git init -q --bare open.git; GIT_DIR=open.git git index-pack --stdin < out/result.pack");
    auto collected = collect(lab, tree);
    ASSERT_FALSE(collected);
    EXPECT_EQ(collected.error().code, Code::denied) << collected.error().what;
  }
}

TEST(Collect, ShowsWhatLiesBesideNewFilesOnly) {
  Lab lab;
  lab.make_source("mkdir -p d/e other/deep; printf 1 > README; printf 1 > d/e/x; printf 1 > other/deep/y");
  lab.prepare();
  lab.edit("printf 2 > README; printf n > d/e/X; mkdir new; printf n > new/z");
  CollectInput input;
  input.tree = must(lab.snapshot()).tree;
  const auto collected = must(lab.collect(lab.make_store("s"), input));
  const std::set<std::string> beside(collected.beside.begin(), collected.beside.end());
  // Not d/e: a folder below the root that is looked into is not named itself, its files are.
  EXPECT_EQ(beside, (std::set<std::string>{"README", "d", "d/e/X", "d/e/x", "new", "new/z", "other"}));
  lab.edit("rm -r d/e/X new");
  input.tree = must(lab.snapshot()).tree;
  EXPECT_TRUE(must(lab.collect(lab.make_store("t"), input)).beside.empty()) << "nothing is new";
}

TEST(Collect, RefusesAWrongTreeAndBrokenPacks) {
  Lab lab;
  lab.make_source(kBase);
  lab.prepare();
  lab.edit("printf new > n.txt; head -c 100000 /dev/urandom > r.bin");
  auto snapshot = must(lab.snapshot());
  int number = 0;
  auto refused = [&](const std::string& tree, const std::string& damage) {
    lab.sh(lab.at("out"), "cp -p result.pack kept.pack; chmod u+w result.pack;" + damage);
    auto collected = lab.collect(lab.make_store("s" + std::to_string(++number)), [&] {
      CollectInput input;
      input.tree = tree;
      return input;
    }());
    lab.sh(lab.at("out"), "rm -rf result.pack; cp -p kept.pack result.pack");
    return collected ? std::string("taken") : std::string(code_name(collected.error().code));
  };
  EXPECT_EQ(refused(snapshot.tree, "true"), "taken");
  EXPECT_EQ(refused(std::string(40, '1'), "true"), "denied");
  EXPECT_EQ(refused(lab.cloned.identity.head, "true"), "denied");
  EXPECT_EQ(refused(snapshot.tree, "truncate -s -1 result.pack"), "denied");
  EXPECT_EQ(refused(snapshot.tree, "printf x | dd of=result.pack bs=1 seek=60 conv=notrunc 2>/dev/null"),
            "denied");
  EXPECT_EQ(refused(snapshot.tree, "rm result.pack; mkfifo result.pack"), "denied");
  EXPECT_EQ(refused(snapshot.tree, "rm result.pack; ln -s kept.pack result.pack"), "denied");
}

TEST(Collect, BoundsAreRefusals) {
  Lab lab;
  lab.make_source(kBase);
  lab.prepare();
  lab.edit("mkdir -p 1/2/3/4; printf x > 1/2/3/4/f; printf y > g; head -c 3000000 /dev/zero > zero");
  const std::string tree = must(lab.snapshot()).tree;
  int number = 0;
  auto refused = [&](auto change) {
    CollectInput input;
    input.tree = tree;
    change(&input.bounds);
    auto collected = lab.collect(lab.make_store("n" + std::to_string(++number)), input);
    if (collected) return std::string("taken");
    EXPECT_EQ(collected.error().code, Code::exhausted);
    return collected.error().what.substr(0, collected.error().what.find(' ', 4));
  };
  EXPECT_EQ(refused([](auto*) {}), "taken");
  EXPECT_EQ(refused([](auto* bounds) {
              bounds->paths = 3;
              bounds->depth = 4;
            }),
            "taken");
  EXPECT_EQ(refused([](auto* bounds) { bounds->paths = 2; }), "more");
  EXPECT_EQ(refused([](auto* bounds) { bounds->depth = 3; }), "folders");
  EXPECT_EQ(refused([](auto* bounds) { bounds->pack_bytes = 100; }), "the pack");
  EXPECT_EQ(refused([](auto* bounds) { bounds->inflated_bytes = 2'900'000; }), "the objects");
}

// isolation.md D 71: ten objects that name more paths than any disk would hold.
TEST(Collect, TreeBombIsRefusedForItsPaths) {
  Lab lab;
  lab.make_source(kBase);
  lab.prepare();
  const std::string tree = forge(lab, R"(
b=$(printf x | git hash-object -w --stdin)
t=$(for i in 0 1 2 3 4 5 6 7 8 9; do printf '100644 blob %s\t%s\n' $b $i; done | git mktree)
for level in 1 2 3 4 5 6 7 8 9; do
  t=$(for i in 0 1 2 3 4 5 6 7 8 9; do printf '040000 tree %s\t%s\n' $t $i; done | git mktree)
done
echo $t)");
  CollectInput input;
  input.bounds.memory_bytes = 512ULL << 20U;
  auto collected = collect(lab, tree, input);
  ASSERT_FALSE(collected);
  EXPECT_EQ(collected.error().code, Code::exhausted);
}

TEST(Collect, GitlinksAreNeverTaken) {
  Lab lab;
  lab.make_source(kBase);
  lab.prepare();
  const std::string tree =
      forge(lab, "printf '160000 commit %s\\tsub\\n' " + std::string(40, 'a') + " | git mktree");
  auto collected = collect(lab, tree);
  ASSERT_FALSE(collected);
  EXPECT_EQ(collected.error().code, Code::denied);
  EXPECT_NE(collected.error().what.find("gitlink"), std::string::npos);
}

TEST(AttemptStore, RefusesFilesThatAreNoPairAndLeavesNothing) {
  Lab lab;
  lab.make_source(kBase);
  lab.prepare();
  auto store = lab.make_store("a");
  auto incoming = must(store.open_incoming());
  const std::string folder = incoming.folder.path();
  EXPECT_FALSE(store.adopt(std::move(incoming)));  // empty
  EXPECT_FALSE(cofferdam::exists(folder));
  incoming = must(store.open_incoming());
  const std::string pack = lab.cloned.packs.packs[0];
  lab.sh(lab.at("."), "cp " + pack + " " + incoming.folder.path() + "/pack; cp " + pack + " " +
                          incoming.folder.path() + "/index");
  EXPECT_FALSE(store.adopt(std::move(incoming)));
  EXPECT_EQ(lab.sh(store.path(), "ls objects/pack"), "");
  incoming = must(store.open_incoming());
  lab.sh(lab.at("."), "cp " + pack + " " + incoming.folder.path() + "/pack; cp " +
                          cofferdam::contract::index_of(lab.cloned.packs.packs[0]) + " " +
                          incoming.folder.path() + "/index");
  EXPECT_TRUE(store.adopt(std::move(incoming)));  // the control
  auto again = cofferdam::handoff::AttemptStore::create(store.path(), lab.cloned.identity, lab.cloned.packs);
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, Code::conflict);
  EXPECT_TRUE(cofferdam::handoff::AttemptStore::open(store.path()));
}

}  // namespace
