// What is pruned and what is kept, and a folder that is only removed when it can be no other.
#include "cli/retention.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "base/file.h"
#include "cli/attempt_folder.h"
#include "cli/disk_usage.h"
#include "contract/json.h"

namespace cofferdam::cli {
namespace {

ledger::Attempt attempt(const std::string& id, std::int64_t finished_at) {
  ledger::Attempt one;
  one.id = id;
  one.finished = finished_at > 0;
  if (one.finished) one.finished_at = Timestamp{finished_at};
  return one;
}

std::vector<std::string> ids(const PrunePlan& plan) {
  std::vector<std::string> out;
  for (const ledger::Attempt& one : plan.old) out.push_back(one.id);
  return out;
}

using Ids = std::vector<std::string>;

TEST(PlanPrune, OldestFirstAndNeverWhatRuns) {
  const std::vector<ledger::Attempt> attempts = {attempt("e", 0), attempt("d", 40), attempt("c", 30),
                                                 attempt("b", 20), attempt("a", 0)};
  const PrunePlan plan = plan_prune(attempts, Timestamp{40}, 0);
  EXPECT_EQ(ids(plan), (Ids{"b", "c"}));
  EXPECT_EQ(plan.running, 2U);
  EXPECT_EQ(plan.young, 1U);
  EXPECT_EQ(plan.newest, 0U);
  EXPECT_EQ(ids(plan_prune(attempts, Timestamp{41}, 0)), (Ids{"b", "c", "d"}));
  EXPECT_EQ(ids(plan_prune({}, Timestamp{41}, 0)), Ids{});
}

TEST(PlanPrune, TheNewestStayWhateverTheirAge) {
  const std::vector<ledger::Attempt> attempts = {attempt("r", 0), attempt("c", 30), attempt("b", 20),
                                                 attempt("a", 10)};
  const PrunePlan plan = plan_prune(attempts, Timestamp{25}, 2);
  EXPECT_EQ(ids(plan), Ids{"a"});
  EXPECT_EQ(plan.newest, 1U);
  EXPECT_EQ(plan.young, 1U);
  EXPECT_EQ(plan.running, 1U);
  EXPECT_EQ(ids(plan_prune(attempts, Timestamp{25}, 9)), Ids{});
}

TEST(ParseAge, DaysAndDurations) {
  EXPECT_EQ(*parse_age("30d"), std::chrono::hours(720));
  EXPECT_EQ(*parse_age("0d"), std::chrono::hours(0));
  EXPECT_EQ(*parse_age("1h30m"), std::chrono::minutes(90));
  for (const char* bad : {"", "d", "30", "-1d", "1.5d", "1d2h", "999999d", " 1d", "1D"}) {
    auto parsed = parse_age(bad);
    ASSERT_FALSE(parsed) << bad;
    EXPECT_EQ(parsed.error().code, Code::usage);
    EXPECT_NE(parsed.error().hint.find("30d"), std::string::npos);
  }
}

std::string stored(const std::optional<std::string>& commit, const std::optional<std::string>& ref,
                   const std::string& state) {
  contract::ResultRecord result;
  result.attempt_id = "a";
  result.invocation_sha256 = std::string(64, 'a');
  result.chain_head = std::string(64, 'b');
  result.cause = {"exit", "", Timestamp{1}};
  result.agent.name = "command";
  result.change.base = std::string(40, 'c');
  result.change.commit = commit;
  result.change.ref = ref;
  result.publication.state = state;
  return contract::encode_result(result);
}

TEST(UnpublishedWork, IsACommitWithoutARef) {
  const std::string commit(40, 'd');
  EXPECT_NE(unpublished_work(stored(commit, {}, "none"), {}, true).find("never handed off"),
            std::string::npos);
  EXPECT_NE(unpublished_work(stored({}, {}, "failed"), {}, true), "");
  EXPECT_NE(unpublished_work("{}", {}, true).find("cannot be read"), std::string::npos);
  EXPECT_EQ(unpublished_work(stored(commit, "refs/heads/x", "published"), {}, true), "");
  EXPECT_EQ(unpublished_work(stored({}, {}, "none"), {}, true), "");
  EXPECT_EQ(unpublished_work(stored(commit, {}, "none"), {}, false), "") << "discarded before";
}

TEST(UnpublishedWork, IsNoneWhenItWasPublishedBehindTheResult) {
  ledger::PublicationRecord later;
  for (const char* state : {"claimed", "failed", "stale"}) {
    later.state = state;
    EXPECT_NE(unpublished_work(stored(std::string(40, 'd'), {}, "none"), later, true), "") << state;
  }
  later.state = "published";
  EXPECT_EQ(unpublished_work(stored(std::string(40, 'd'), {}, "none"), later, true), "");
}

TEST(PruneReport, SaysWhatAndWhy) {
  PruneReport report;
  report.pruned = {"a-1"};
  report.kept = {{"b-1", "its work was\nnever handed off"}};
  report.counts.young = 3;
  report.evicted = {{std::string(40, 'e'), "/srv/r\x1b", 2048}};
  report.folder_bytes = 4096;
  const std::string text = prune_text(report);
  EXPECT_NE(text.find("pruned  a-1\n"), std::string::npos) << text;
  EXPECT_NE(text.find("kept  b-1  its work was never handed off\n"), std::string::npos) << text;
  EXPECT_NE(text.find("; kept 1 that are old enough; 3 younger\n"), std::string::npos) << text;
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  report.dry_run = true;
  EXPECT_EQ(prune_text(report).rfind("would prune  a-1\n", 0), 0U);
  auto json = contract::parse_json(prune_json(report), 1U << 20U);
  ASSERT_TRUE(json);
  EXPECT_EQ((*json)["pruned"], contract::Json::array({"a-1"}));
  EXPECT_EQ((*json)["kept"][0]["attempt_id"], "b-1");
  EXPECT_EQ((*json)["evicted"][0]["bytes"], 2048);
}

class Folder : public ::testing::Test {
 protected:
  void SetUp() override {
    auto made = TempDir::create(::testing::TempDir(), "folder.");
    ASSERT_TRUE(made) << made.error().line();
    folder_.emplace(*std::move(made));
    ASSERT_TRUE(make_dirs(at("attempts/a/store.git")));
    ASSERT_TRUE(make_dirs(at("attempts/b")));
    ASSERT_TRUE(make_dirs(at("elsewhere/precious")));
  }
  std::string at(const std::string& path) const { return folder_->path() + "/" + path; }
  Result<std::optional<AttemptFolder>> open(const std::string& id) const {
    return AttemptFolder::open(folder_->path(), id);
  }
  std::optional<TempDir> folder_;
};

TEST_F(Folder, IsRemovedAndTheOneBesideItStays) {
  auto found = open("a");
  ASSERT_TRUE(found && found->has_value());
  EXPECT_TRUE((*found)->has_store());
  EXPECT_GT((*found)->bytes(), 0U);
  ASSERT_TRUE((*found)->remove());
  EXPECT_EQ(*list_dir(at("attempts")), std::vector<std::string>{"b"});
  auto again = open("a");
  ASSERT_TRUE(again);
  EXPECT_FALSE(again->has_value());
}

TEST_F(Folder, LinksInItAreRemovedAndNotFollowed) {
  ASSERT_EQ(::symlink(at("elsewhere").c_str(), at("attempts/a/link").c_str()), 0);
  auto found = open("a");
  ASSERT_TRUE(found && found->has_value());
  ASSERT_TRUE((*found)->remove());
  EXPECT_TRUE(is_directory(at("elsewhere/precious")));
}

TEST_F(Folder, ALinkOrAFileInItsPlaceIsLeftAlone) {
  ASSERT_EQ(::symlink(at("elsewhere").c_str(), at("attempts/l").c_str()), 0);
  ASSERT_TRUE(write_file_atomic(at("attempts/f"), "x"));
  for (const char* id : {"l", "f"}) {
    auto found = open(id);
    ASSERT_FALSE(found) << id;
    EXPECT_EQ(found.error().code, Code::denied);
    EXPECT_TRUE(exists(at(std::string("attempts/") + id)));
  }
  EXPECT_TRUE(is_directory(at("elsewhere/precious")));
}

TEST_F(Folder, ALinkInThePlaceOfAllAttemptsIsLeftAlone) {
  ASSERT_TRUE(make_dirs(at("elsewhere/a")));
  ASSERT_TRUE(remove_tree(at("attempts")));
  ASSERT_EQ(::symlink(at("elsewhere").c_str(), at("attempts").c_str()), 0);
  EXPECT_EQ(open("a").error().code, Code::denied);
  EXPECT_FALSE(remove_folder_leftovers(folder_->path()));
  EXPECT_TRUE(is_directory(at("elsewhere/a")));
}

TEST_F(Folder, SomebodyElsesIsLeftAlone) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give a folder away";
  ASSERT_EQ(::chown(at("attempts/a").c_str(), 12345, 12345), 0);
  EXPECT_EQ(open("a").error().code, Code::denied);
  EXPECT_TRUE(open("b")->has_value()) << "the control";
}

TEST_F(Folder, WhoeverWorksOnItKeepsIt) {
  ASSERT_TRUE(write_file_atomic(at("attempts/a/lock"), ""));
  {
    auto lock = open_file(at("attempts/a/lock"), O_RDWR);
    ASSERT_TRUE(lock);
    auto taken = try_lock(lock->get());
    ASSERT_TRUE(taken && *taken);
    EXPECT_EQ(open("a").error().code, Code::conflict);
  }
  EXPECT_TRUE(open("a")->has_value()) << "the control";
}

TEST_F(Folder, LeftoversOfAKilledRemovalGo) {
  ASSERT_TRUE(make_dirs(at("attempts/.gone-1/x")));
  ASSERT_EQ(::symlink(at("elsewhere").c_str(), at("attempts/.gone-2").c_str()), 0);
  ASSERT_TRUE(remove_folder_leftovers(folder_->path()));
  EXPECT_FALSE(exists(at("attempts/.gone-1")));
  EXPECT_TRUE(is_directory(at("elsewhere/precious")));
  EXPECT_TRUE(is_directory(at("attempts/a")));
}

TEST(DiskUsageText, SaysWhatTakesWhat) {
  EXPECT_NE(disk_usage_text({}, Timestamp{0}).find("nothing is kept"), std::string::npos);
  DiskUsage usage;
  usage.state_dir = "/state";
  usage.ledger_bytes = 1024;
  usage.vault_bytes = 2048;
  usage.max_bytes = 1U << 30U;
  usage.attempts_bytes = 4096;
  usage.packs = {{std::string(40, 'a'), "/srv/r", 2048, Timestamp{0}, true, {"x", "y"}},
                 {std::string(40, 'b'), "", 10, Timestamp{0}, false, {}}};
  usage.folders = {{"small", 10}, {"x", 4096}};
  const std::string text = disk_usage_text(usage, Timestamp{3'600'000});
  EXPECT_NE(text.find("total     7 KiB"), std::string::npos) << text;
  EXPECT_NE(text.find("aaaaaaaaaaaa  2 KiB  1h        a running attempt, x and 1 more  /srv/r"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("nobody"), std::string::npos) << text;
  EXPECT_LT(text.find("\nx "), text.find("\nsmall")) << "the largest first";
  auto json = contract::parse_json(disk_usage_json(usage), 1U << 20U);
  ASSERT_TRUE(json);
  EXPECT_EQ((*json)["total_bytes"], 7168);
  EXPECT_EQ((*json)["vault"]["bases"][0]["attempts"], contract::Json::array({"x", "y"}));
  EXPECT_EQ((*json)["vault"]["bases"][1]["in_use"], false);
  EXPECT_EQ((*json)["images"]["bytes"], 0);
}

}  // namespace
}  // namespace cofferdam::cli
