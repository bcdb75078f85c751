// Into the user's work tree, index and branch, or not at all: also when the process is killed in the middle,
// which an exception at a failpoint plays here.
#include "handoff/place.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <string>

#include "base/failpoint.h"
#include "base/io.h"
#include "handoff/beneath.h"
#include "unit/handoff/lab.h"

namespace {

std::string killed_at;  // the failpoint at which this process is "killed"

struct Killed {};

}  // namespace

namespace cofferdam {

void failpoint(const char* name) {
  if (killed_at == name) throw Killed();
}
void failpoint_part(const char* /*part*/, pid_t /*pid*/) {}

}  // namespace cofferdam

namespace {

using namespace cofferdam::handoff;  // NOLINT(google-build-using-namespace): the subject of every line
using lab::Lab;
using lab::must;

// HEAD has a.txt, b.txt and d/c.txt; the plan changes the first, removes the last and adds n/n.txt.
struct Ready {
  Ready() {
    lab.make_source("echo one > a.txt; echo b > b.txt; mkdir d; echo c > d/c.txt");
    const std::string source = lab.at("source");
    plan.attempt_id = "id-1";
    plan.git_dir = source + "/.git";
    plan.work_tree = source;
    plan.branch = "refs/heads/main";
    plan.old_head = lab.sh(source, "git rev-parse HEAD");
    plan.message = "applied";
    plan.name = "Cofferdam";
    plan.email = "cofferdam@localhost";
    lab.sh(source,
           "cp -a . ../next; cd ../next; echo two > a.txt; git rm -q d/c.txt; mkdir n; echo n > n/n.txt; git "
           "add -A;"
           "git commit -qm next; git push -q ../source HEAD:refs/hidden/next");
    plan.new_head = lab.sh(source, "git rev-parse refs/hidden/next");
    add("a.txt", PlaceKind::file, "two\n", "one\n");
    add("d/c.txt", PlaceKind::absent, "", "c\n");
    add("n/n.txt", PlaceKind::file, "n\n", std::nullopt);
    contents = must(cofferdam::open_file(lab.at("contents"), O_RDWR | O_CREAT | O_EXCL));
    must(cofferdam::write_all(contents.get(), bytes));
    before = state();
  }

  void add(const std::string& path, PlaceKind kind, const std::string& becomes,
           std::optional<std::string> was) {
    PlaceFile file;
    file.path = path;
    file.kind = kind;
    file.offset = bytes.size();
    file.size = becomes.size();
    bytes += becomes;
    const bool gone = kind == PlaceKind::absent;
    file.mode = gone ? "0" : "100644";
    file.id = gone ? std::string(40, '0') : lab.sh(lab.at("next"), "git rev-parse HEAD:" + path);
    file.becomes = fingerprint(kind, becomes);
    file.known.push_back(was ? fingerprint(PlaceKind::file, *was) : "-");
    plan.files.push_back(std::move(file));
  }

  std::string state() const {
    return lab.sh(lab.at("source"),
                  "git status --porcelain; git rev-parse HEAD; find . -name .git -prune -o -print | sort;"
                  "cat a.txt 2>&1 || true; ls .git | grep -v COMMIT_EDITMSG");
  }
  std::string applied() const {
    return lab.sh(lab.at("source"),
                  "git status --porcelain; git rev-parse HEAD; cat a.txt n/n.txt; test ! -e d;"
                  "test ! -e .git/index.lock; test ! -e .git/cofferdam-apply");
  }

  Lab lab;
  Placement plan;
  std::string bytes;
  cofferdam::UniqueFd contents;
  std::string before;
};

TEST(Place, PutsFilesIndexAndBranchInPlace) {
  Ready ready;
  EXPECT_TRUE(must(place(ready.plan, ready.contents.get())).empty());
  EXPECT_EQ(ready.applied(), ready.plan.new_head + "\ntwo\nn");
}

TEST(Place, ADryRunChangesNothing) {
  Ready ready;
  ready.plan.dry_run = true;
  EXPECT_TRUE(must(place(ready.plan, ready.contents.get())).empty());
  EXPECT_EQ(ready.state(), ready.before);
}

TEST(Place, AKillInTheMiddleIsMended) {
  for (const char* point : {"apply-begun", "apply-half", "apply-swapped"}) {
    SCOPED_TRACE(point);
    Ready ready;
    killed_at = point;
    EXPECT_THROW((void)place(ready.plan, ready.contents.get()).has_value(), Killed);
    killed_at.clear();
    EXPECT_NE(ready.state(), ready.before);  // the control: something was left
    EXPECT_EQ(must(mend(ready.plan.git_dir)), "the application of id-1 that was broken off has been undone");
    EXPECT_EQ(ready.state(), ready.before);
    EXPECT_EQ(must(mend(ready.plan.git_dir)), "");
    EXPECT_TRUE(must(place(ready.plan, ready.contents.get())).empty());
    EXPECT_EQ(ready.applied(), ready.plan.new_head + "\ntwo\nn");
  }
}

TEST(Place, AKillBehindTheBranchIsFinished) {
  Ready ready;
  killed_at = "apply-moved";
  EXPECT_THROW((void)place(ready.plan, ready.contents.get()).has_value(), Killed);
  killed_at.clear();
  EXPECT_EQ(must(mend(ready.plan.git_dir)), "the application of id-1 that was broken off has been finished");
  EXPECT_EQ(ready.applied(), ready.plan.new_head + "\ntwo\nn");
}

// What somebody did between the kill and the mending is not lost.
TEST(Place, MendingTakesNothingOfTheUsers) {
  Ready ready;
  killed_at = "apply-swapped";
  EXPECT_THROW((void)place(ready.plan, ready.contents.get()).has_value(), Killed);
  killed_at.clear();
  ready.lab.sh(ready.lab.at("source"), "echo edited > a.txt");
  auto mended = mend(ready.plan.git_dir);
  ASSERT_FALSE(mended);
  EXPECT_NE(mended.error().line().find("cofferdam-apply/old"), std::string::npos) << mended.error().line();
  EXPECT_EQ(ready.lab.sh(ready.lab.at("source"), "cat a.txt .git/cofferdam-apply/old/0"), "edited\none");
}

TEST(Place, AnErrorPutsEverythingBack) {
  Ready ready;
  ready.plan.new_head = std::string(40, '1');  // no such commit: the branch cannot move
  auto placed = place(ready.plan, ready.contents.get());
  ASSERT_FALSE(placed);
  EXPECT_NE(placed.error().what.find("update-ref"), std::string::npos) << placed.error().line();
  EXPECT_EQ(ready.state(), ready.before);
}

TEST(Place, AForeignLockOnTheBranchPutsEverythingBack) {
  Ready ready;
  ready.lab.sh(ready.lab.at("source"), "echo theirs > .git/refs/heads/main.lock");
  auto placed = place(ready.plan, ready.contents.get());
  ASSERT_FALSE(placed);
  EXPECT_NE(placed.error().what.find("git update-ref: "), std::string::npos) << placed.error().line();
  ready.lab.sh(ready.lab.at("source"), "rm .git/refs/heads/main.lock");
  EXPECT_EQ(ready.state(), ready.before);
}

TEST(Place, AForeignLockOnTheIndexIsRespected) {
  Ready ready;
  ready.lab.sh(ready.lab.at("source"), "echo theirs > .git/index.lock");
  auto placed = place(ready.plan, ready.contents.get());
  ASSERT_FALSE(placed);
  EXPECT_EQ(placed.error().code, cofferdam::Code::conflict);
  EXPECT_EQ(ready.lab.sh(ready.lab.at("source"), "cat .git/index.lock; rm .git/index.lock; cat a.txt"),
            "theirs\none");
  EXPECT_EQ(ready.state(), ready.before);
}

TEST(Place, ContentsThatAreNotThePlansAreRefused) {
  Ready ready;
  ready.lab.sh(ready.lab.at("."), "printf 'TWO\\nn\\n' > contents");
  EXPECT_FALSE(place(ready.plan, ready.contents.get()));
  EXPECT_EQ(ready.state(), ready.before);
}

TEST(Place, PlansAreReadAsTheyWereWritten) {
  Ready ready;
  ready.plan.files[0].path = "odd\n\xff name";
  const std::string text = encode_placement(ready.plan);
  const Placement read = must(decode_placement(text));
  EXPECT_EQ(encode_placement(read), text);
  EXPECT_EQ(read.files[0].path, ready.plan.files[0].path);
  EXPECT_FALSE(decode_placement(text.substr(0, text.size() - 1)));
}

// attacks.md B6.
TEST(Beneath, TakesPlainPathsOnly) {
  for (const char* path :
       {"", "/etc/passwd", "../x", "a/../b", "a/..", "a//b", "a/", "./a", ".git/config", "a/.GIT/x"}) {
    EXPECT_FALSE(is_plain_path(path)) << path;
    Ready ready;
    ready.plan.files[2].path = path;
    auto placed = place(ready.plan, ready.contents.get());
    ASSERT_FALSE(placed) << path;
    EXPECT_EQ(placed.error().code, cofferdam::Code::denied);
    EXPECT_EQ(ready.state(), ready.before);
  }
  for (const char* path : {"a", "a/b", "..a", ".gitx", "a b\n"}) EXPECT_TRUE(is_plain_path(path)) << path;
}

TEST(Beneath, FollowsNoLink) {
  Lab lab;
  lab.sh(lab.at("."), "mkdir in out; echo x > out/x; ln -s ../out in/link; ln -s ../out/x in/x");
  auto root = must(cofferdam::open_file(lab.at("in"), O_RDONLY | O_DIRECTORY));
  EXPECT_EQ(must(fingerprint_at(root.get(), "link/x")), "-");
  EXPECT_FALSE(open_parent(root.get(), "link/x"));
  EXPECT_FALSE(make_parent(root.get(), "link/y/z"));
  EXPECT_EQ(must(fingerprint_at(root.get(), "x")), fingerprint(PlaceKind::link, "../out/x"));
  EXPECT_EQ(lab.sh(lab.at("out"), "ls"), "x");
  // The control: a folder is gone through.
  lab.sh(lab.at("in"), "rm link; mkdir link; echo x > link/x");
  EXPECT_EQ(must(fingerprint_at(root.get(), "link/x")), fingerprint(PlaceKind::file, "x\n"));
}

}  // namespace
