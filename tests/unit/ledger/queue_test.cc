// Capacity: who is let in, who waits, in which order.
#include "ledger_fixture.h"

namespace cofferdam::ledger::testing {
namespace {

constexpr std::uint64_t kGib = 1ULL << 30U;

class QueueTest : public LedgerTest {
 protected:
  static contract::Invocation wants(const std::string& id, std::uint64_t gib,
                                    contract::WhenFull when_full = contract::WhenFull::queue) {
    contract::InvocationFields fields = fields_of(id);
    fields.limits.memory_bytes = gib * kGib;
    fields.when_full = when_full;
    return build(std::move(fields));
  }
  static Admission admit(Ledger& ledger, const contract::Invocation& request, const Capacity& capacity) {
    auto admission = ledger.admit(request, 1, capacity);
    EXPECT_TRUE(admission) << admission.error().line();
    return admission ? *admission : Admission{};
  }
  static Admission look(Ledger& ledger, const std::string& id, const Capacity& capacity) {
    auto admission = ledger.leave_queue(id, capacity);
    EXPECT_TRUE(admission) << admission.error().line();
    return admission ? *admission : Admission{};
  }
};

TEST_F(QueueTest, ThoseWhoWaitComeInInTheirOrder) {
  const Capacity one{1, 0};
  Ledger ledger = open();
  EXPECT_TRUE(admit(ledger, wants("a-1", 1), one).admitted);
  EXPECT_EQ(admit(ledger, wants("a-2", 1), one).position, 1U);
  EXPECT_EQ(admit(ledger, wants("a-3", 1), one).position, 2U);
  EXPECT_TRUE(record(ledger, "a-2").waiting);
  EXPECT_EQ(record(ledger, "a-2").stage, contract::Stage::queued);
  EXPECT_TRUE(look(ledger, "a-3", one).events.empty()) << "nothing has changed";

  finish(ledger, wants("a-1", 1));
  EXPECT_FALSE(look(ledger, "a-3", one).admitted) << "nobody overtakes";
  EXPECT_EQ(admit(ledger, wants("a-4", 1), one).position, 3U) << "nor who comes later";
  EXPECT_TRUE(look(ledger, "a-2", one).admitted);
  EXPECT_FALSE(record(ledger, "a-2").waiting);
  const Admission moved = look(ledger, "a-3", one);
  EXPECT_EQ(moved.position, 1U);
  ASSERT_EQ(moved.events.size(), 1U);
  EXPECT_EQ(moved.events.front().data, R"({"attempts":1,"memory_bytes":1073741824,"position":1})");
  finish(ledger, wants("a-2", 1));
  EXPECT_TRUE(look(ledger, "a-3", one).admitted);
  EXPECT_EQ(types_of(ledger, "a-3"), "queued queued admitted");
  EXPECT_EQ(ledger.leave_queue("a-3", one).error().code, Code::conflict) << "it does not wait any more";
  for (const char* id : {"a-1", "a-2", "a-3", "a-4"}) expect_intact(ledger, id);
}

TEST_F(QueueTest, WhoGivesUpLeavesItsPlace) {
  const Capacity one{1, 0};
  Ledger ledger = open();
  for (const char* id : {"a-1", "a-2", "a-3"}) admit(ledger, wants(id, 1), one);
  ASSERT_TRUE(ledger.append_all("a-2", {{"cancel-requested"}, {"finished"}}));
  finish(ledger, wants("a-2", 1));
  EXPECT_EQ(look(ledger, "a-3", one).position, 1U);
  finish(ledger, wants("a-1", 1));
  EXPECT_TRUE(look(ledger, "a-3", one).admitted);
}

TEST_F(QueueTest, MemoryIsABoundOfItsOwn) {
  const Capacity four{0, 4 * kGib};
  Ledger ledger = open();
  EXPECT_TRUE(admit(ledger, wants("a-1", 3), four).admitted);
  EXPECT_TRUE(admit(ledger, wants("a-2", 1), four).admitted);
  EXPECT_FALSE(admit(ledger, wants("a-3", 2), four).admitted);
  EXPECT_FALSE(admit(ledger, wants("a-4", 1), four).admitted);
  finish(ledger, wants("a-2", 1));
  EXPECT_FALSE(look(ledger, "a-3", four).admitted);
  EXPECT_FALSE(look(ledger, "a-4", four).admitted) << "it would fit, but is not first";
  finish(ledger, wants("a-1", 3));
  EXPECT_TRUE(look(ledger, "a-3", four).admitted);
  EXPECT_TRUE(look(ledger, "a-4", four).admitted);
  auto larger = ledger.admit(wants("a-5", 5), 1, four);
  ASSERT_FALSE(larger) << "it would wait for ever";
  EXPECT_EQ(larger.error().code, Code::exhausted);
  EXPECT_NE(larger.error().line().find("memory_bytes"), std::string::npos) << larger.error().line();
}

TEST_F(QueueTest, WhoDoesNotWantToWaitIsRefusedWithoutATrace) {
  const Capacity one{1, 0};
  Ledger ledger = open();
  admit(ledger, wants("a-1", 1), one);
  const auto request = wants("a-2", 1, contract::WhenFull::refuse);
  auto refused = ledger.admit(request, 1, one);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::exhausted);
  EXPECT_NE(refused.error().what.find("1 of 1 attempts"), std::string::npos) << refused.error().what;
  EXPECT_NE(refused.error().hint.find("[capacity]"), std::string::npos) << refused.error().hint;
  auto found = ledger.find("a-2");
  ASSERT_TRUE(found);
  EXPECT_FALSE(found->has_value());
  finish(ledger, wants("a-1", 1));
  EXPECT_TRUE(admit(ledger, request, one).admitted) << "the control: the same one, when there is room";
}

TEST_F(QueueTest, WithoutABoundNobodyWaits) {
  Ledger ledger = open();
  for (int i = 0; i < 100; ++i) {
    EXPECT_TRUE(admit(ledger, wants("a-" + std::to_string(i), 1000), Capacity{}).admitted);
  }
}

TEST_F(QueueTest, AContextThatMovedOnMeanwhileIsFound) {
  const Capacity one{1, 0};
  Ledger ledger = open();
  ASSERT_TRUE(ledger.set_context("notes", 0, 3));
  admit(ledger, wants("a-1", 1), one);
  EXPECT_FALSE(admit(ledger, with_context("a-2", 3), one).admitted);
  ASSERT_TRUE(ledger.set_context("notes", 3, 4));
  finish(ledger, wants("a-1", 1));
  auto late = ledger.leave_queue("a-2", one);
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, Code::conflict);
  EXPECT_TRUE(record(ledger, "a-2").waiting);
  EXPECT_TRUE(ledger.append("a-2", "finished", "{}")) << "it ends in the queue";
}

TEST_F(QueueTest, OfRacingProcessesOnlyAsManyComeInAsFit) {
  constexpr int kRacers = 12;
  const auto codes = in_processes(kRacers, [&](int index) {
    auto ledger = Ledger::open(path_);
    if (!ledger) return 2;
    auto admission = ledger->admit(wants("a-" + std::to_string(index), 1), 1, Capacity{3, 0});
    return !admission ? 3 : admission->admitted ? 0 : 1;
  });
  EXPECT_EQ(std::count(codes.begin(), codes.end(), 0), 3);
  EXPECT_EQ(std::count(codes.begin(), codes.end(), 1), kRacers - 3);
}

}  // namespace
}  // namespace cofferdam::ledger::testing
