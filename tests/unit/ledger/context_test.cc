// Captured contexts: compare-and-swap, and what admission refuses.
#include "ledger_fixture.h"

namespace cofferdam::ledger::testing {
namespace {

TEST_F(LedgerTest, AContextGoesForwardFromWhatTheCallerHasSeen) {
  Ledger ledger = open();
  EXPECT_EQ(ledger.set_context("notes", 1, 2).error().code, Code::conflict) << "there is none yet";
  auto made = ledger.set_context("notes", 0, 3, kDigest);
  ASSERT_TRUE(made) << made.error().line();
  EXPECT_EQ(made->version, 3U);
  EXPECT_EQ(ledger.set_context("notes", 0, 4).error().code, Code::conflict) << "it exists";
  auto late = ledger.set_context("notes", 2, 4);
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, Code::conflict);
  EXPECT_NE(late.error().what.find("at version 3, not 2"), std::string::npos) << late.error().what;
  EXPECT_EQ(ledger.set_context("notes", 3, 3).error().code, Code::usage);
  EXPECT_EQ(ledger.set_context("notes", 3, 2).error().code, Code::usage);
  EXPECT_EQ(ledger.set_context("no tes", 0, 2).error().code, Code::usage);
  EXPECT_EQ(ledger.set_context("notes", 3, 4, "abc").error().code, Code::usage);
  ASSERT_TRUE(ledger.set_context("notes", 3, 7));
  ASSERT_TRUE(ledger.set_context("a/b", 0, 1));

  Ledger other = open();
  auto found = other.context("notes");
  ASSERT_TRUE(found && found->has_value());
  EXPECT_EQ((*found)->version, 7U);
  EXPECT_FALSE((*found)->sha256.has_value());
  auto all = other.contexts();
  ASSERT_TRUE(all);
  ASSERT_EQ(all->size(), 2U);
  EXPECT_EQ(all->front().name, "a/b");
  auto none = other.context("nothing");
  ASSERT_TRUE(none);
  EXPECT_FALSE(none->has_value());
}

TEST_F(LedgerTest, OfRacingProcessesOneMovesTheContext) {
  ASSERT_TRUE(open().set_context("notes", 0, 1));
  const auto codes = in_processes(8, [&](int index) {
    auto ledger = Ledger::open(path_);
    if (!ledger) return 2;
    auto moved = ledger->set_context("notes", 1, 2 + static_cast<std::uint64_t>(index));
    return moved ? 0 : moved.error().code == Code::conflict ? 1 : 3;
  });
  EXPECT_EQ(std::count(codes.begin(), codes.end(), 0), 1);
  EXPECT_EQ(std::count(codes.begin(), codes.end(), 1), 7);
}

class Refusal : public LedgerTest {
 protected:
  // The line of the refusal; it must leave nothing behind.
  std::string refused(Ledger& ledger, const contract::Invocation& request) {
    auto admitted = ledger.admit(request, 1, Capacity{});
    EXPECT_FALSE(admitted);
    if (admitted) return {};
    EXPECT_EQ(admitted.error().code, Code::conflict);
    auto found = ledger.find(request->attempt_id);
    EXPECT_TRUE(found && !found->has_value()) << "a refusal leaves no row";
    EXPECT_FALSE(ledger.admit(request, 1)) << "nor is it taken without a capacity";
    return admitted.error().line();
  }
};

TEST_F(Refusal, OfAnUnknownContextHasTheCommandThatMakesItKnown) {
  Ledger ledger = open();
  const std::string line = refused(ledger, with_context("a-1", 3));
  EXPECT_NE(line.find("cofferdam context set notes --from 0 --to 3 --sha256 " + kDigest), std::string::npos)
      << line;
  ASSERT_TRUE(ledger.set_context("notes", 0, 3, kDigest));
  EXPECT_TRUE(ledger.admit(with_context("a-1", 3), 1, Capacity{})) << "the control: what was said helps";
}

TEST_F(Refusal, OfAStaleVersionNamesBoth) {
  Ledger ledger = open();
  ASSERT_TRUE(ledger.set_context("notes", 0, 4));
  std::string line = refused(ledger, with_context("a-1", 3));
  EXPECT_NE(line.find("at version 4"), std::string::npos) << line;
  EXPECT_NE(line.find("from version 3"), std::string::npos) << line;
  line = refused(ledger, with_context("a-1", 5));
  EXPECT_NE(line.find("--from 4 --to 5"), std::string::npos) << line;
  EXPECT_TRUE(ledger.admit(with_context("a-1", 4), 1, Capacity{}));
}

TEST_F(Refusal, OfAnotherDigestNamesBoth) {
  Ledger ledger = open();
  ASSERT_TRUE(ledger.set_context("notes", 0, 3, std::string(64, 'e')));
  const std::string line = refused(ledger, with_context("a-1", 3));
  EXPECT_NE(line.find(std::string(64, 'e')), std::string::npos) << line;
  EXPECT_NE(line.find(kDigest), std::string::npos) << line;
  ASSERT_TRUE(ledger.set_context("any", 0, 3));
  EXPECT_TRUE(ledger.admit(with_context("a-2", 3, "any"), 1, Capacity{})) << "no digest on record: any";
}

}  // namespace
}  // namespace cofferdam::ledger::testing
