// Of two attempts that were made from one version of a context, one is published.
#include <algorithm>

#include "ledger_fixture.h"

namespace cofferdam::ledger::testing {
namespace {

class PublicationTest : public LedgerTest {
 protected:
  void SetUp() override {
    LedgerTest::SetUp();
    ASSERT_TRUE(open().set_context("notes", 0, 3, kDigest));
  }
  static void commit(Ledger& ledger, const contract::Invocation& request) {
    ASSERT_TRUE(ledger.admit(request, 1, Capacity{}));
    auto events = ledger.append_all(request->attempt_id, {{"settled"}, {"snapshot"}, {"committed"}});
    ASSERT_TRUE(events) << events.error().line();
  }
  static PublicationClaim claim_of(const contract::Invocation& request) {
    return {request->attempt_id, request->context, "refs/heads/cofferdam/" + request->attempt_id,
            std::string(40, 'c')};
  }
  static std::string state_of(Ledger& ledger, const std::string& id) {
    auto found = ledger.publication(id);
    EXPECT_TRUE(found);
    return found && found->has_value() ? (*found)->state : "none";
  }
};

TEST_F(PublicationTest, OneOfTwoIsPublishedAndTheOtherIsStale) {
  Ledger one = open();
  Ledger two = open();
  commit(one, with_context("a-1", 3));
  commit(two, with_context("a-2", 3));
  auto first = one.claim_publication(claim_of(with_context("a-1", 3)));
  ASSERT_TRUE(first) << first.error().line();
  EXPECT_TRUE(first->claimed);
  auto second = two.claim_publication(claim_of(with_context("a-2", 3)));
  ASSERT_TRUE(second) << second.error().line();
  EXPECT_FALSE(second->claimed);
  EXPECT_NE(second->reason.find("\"a-1\""), std::string::npos) << second->reason;
  auto closed = one.close_publication("a-1", true, "");
  ASSERT_TRUE(closed) << closed.error().line();

  EXPECT_EQ(types_of(one, "a-1"), "admitted settled snapshot committed publishing published");
  EXPECT_EQ(types_of(one, "a-2"), "admitted settled snapshot committed not-published");
  EXPECT_EQ(state_of(one, "a-1"), "published");
  EXPECT_EQ(state_of(one, "a-2"), "stale");
  EXPECT_EQ(one.close_publication("a-2", true, "").error().code, Code::conflict) << "it holds no claim";
  EXPECT_EQ(one.claim_publication(claim_of(with_context("a-1", 3))).error().code, Code::conflict);
  expect_intact(one, "a-1");
  expect_intact(one, "a-2");
}

TEST_F(PublicationTest, OfRacingProcessesOnePublishes) {
  constexpr int kRacers = 8;
  {
    Ledger ledger = open();
    for (int i = 0; i < kRacers; ++i) commit(ledger, with_context("a-" + std::to_string(i), 3));
  }
  const auto codes = in_processes(kRacers, [&](int index) {
    auto ledger = Ledger::open(path_);
    if (!ledger) return 3;
    const auto request = with_context("a-" + std::to_string(index), 3);
    auto claim = ledger->claim_publication(claim_of(request));
    if (!claim) return 2;
    if (!claim->claimed) return 1;
    return ledger->close_publication(request->attempt_id, true, "") ? 0 : 4;
  });
  EXPECT_EQ(std::count(codes.begin(), codes.end(), 0), 1);
  EXPECT_EQ(std::count(codes.begin(), codes.end(), 1), kRacers - 1);
}

TEST_F(PublicationTest, AContextThatMovedOnMakesItStale) {
  Ledger ledger = open();
  commit(ledger, with_context("a-1", 3));
  ASSERT_TRUE(ledger.set_context("notes", 3, 4));
  auto claim = ledger.claim_publication(claim_of(with_context("a-1", 3)));
  ASSERT_TRUE(claim);
  EXPECT_FALSE(claim->claimed);
  EXPECT_NE(claim->reason.find("at version 4"), std::string::npos) << claim->reason;
  EXPECT_NE(claim->reason.find("from version 3"), std::string::npos) << claim->reason;
}

TEST_F(PublicationTest, AClaimThatFailedIsGivenBackToTheOther) {
  Ledger ledger = open();
  commit(ledger, with_context("a-1", 3));
  commit(ledger, with_context("a-2", 3));
  ASSERT_TRUE(ledger.claim_publication(claim_of(with_context("a-1", 3))));
  ASSERT_TRUE(ledger.close_publication("a-1", false, "the branch exists"));
  EXPECT_EQ(state_of(ledger, "a-1"), "failed");
  auto other = ledger.claim_publication(claim_of(with_context("a-2", 3)));
  ASSERT_TRUE(other);
  EXPECT_TRUE(other->claimed);
  // Tried again meanwhile, the first finds the second; and once that has failed too, gets through.
  auto again = ledger.claim_publication(claim_of(with_context("a-1", 3)));
  ASSERT_TRUE(again);
  EXPECT_FALSE(again->claimed);
  ASSERT_TRUE(ledger.close_publication("a-2", false, "the branch exists"));
  again = ledger.claim_publication(claim_of(with_context("a-1", 3)));
  ASSERT_TRUE(again);
  EXPECT_TRUE(again->claimed);
  EXPECT_EQ(types_of(ledger, "a-1"),
            "admitted settled snapshot committed publishing not-published publishing");
}

TEST_F(PublicationTest, AClaimOutlivesItsSupervisorAndIsTakenUpAgain) {
  {
    Ledger ledger = open();
    commit(ledger, with_context("a-1", 3));
    commit(ledger, with_context("a-2", 3));
    ASSERT_TRUE(ledger.claim_publication(claim_of(with_context("a-1", 3))));
  }
  Ledger later = open();
  auto other = later.claim_publication(claim_of(with_context("a-2", 3)));
  ASSERT_TRUE(other);
  EXPECT_FALSE(other->claimed) << "nobody knows yet whether the ref was made";
  auto again = later.claim_publication(claim_of(with_context("a-1", 3)));
  ASSERT_TRUE(again);
  EXPECT_TRUE(again->claimed);
  EXPECT_TRUE(again->events.empty()) << "the chain says so already";
  EXPECT_TRUE(later.close_publication("a-1", true, ""));
}

TEST_F(PublicationTest, BehindTheResultOnlyTheTableChanges) {
  Ledger ledger = open();
  const auto request = with_context("a-1", 3);
  commit(ledger, request);
  ASSERT_TRUE(ledger.claim_publication(claim_of(request)));
  ASSERT_TRUE(ledger.close_publication("a-1", false, "the branch exists"));
  finish(ledger, request);
  auto claim = ledger.claim_publication(claim_of(request));
  ASSERT_TRUE(claim) << claim.error().line();
  EXPECT_TRUE(claim->claimed);
  EXPECT_TRUE(claim->events.empty());
  auto closed = ledger.close_publication("a-1", true, "");
  ASSERT_TRUE(closed) << closed.error().line();
  EXPECT_TRUE(closed->empty());
  EXPECT_EQ(state_of(ledger, "a-1"), "published");
  expect_intact(ledger, "a-1");
}

TEST_F(PublicationTest, WithoutAContextNothingIsStale) {
  Ledger ledger = open();
  for (const char* id : {"a-1", "a-2"}) {
    commit(ledger, invocation(id));
    auto claim = ledger.claim_publication(claim_of(invocation(id)));
    ASSERT_TRUE(claim) << claim.error().line();
    EXPECT_TRUE(claim->claimed);
    EXPECT_TRUE(ledger.close_publication(id, true, ""));
  }
  EXPECT_EQ(ledger.claim_publication(claim_of(invocation("a-9"))).error().code, Code::not_found);
}

}  // namespace
}  // namespace cofferdam::ledger::testing
