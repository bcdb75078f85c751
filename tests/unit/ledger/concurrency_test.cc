// Several supervisors on one ledger, as processes and as threads.
#include <unistd.h>

#include <algorithm>
#include <barrier>
#include <thread>
#include <vector>

#include "ledger_fixture.h"

namespace cofferdam::ledger::testing {
namespace {

constexpr int kWriters = 8;

TEST_F(LedgerTest, OfRacingProcessesOneAdmits) {
  // The file does not exist yet: they race to make it, too.
  constexpr int kAdmitted = 0;
  constexpr int kConflict = 10;
  constexpr int kOther = 11;
  const auto codes = in_processes(kWriters, [&](int index) {
    auto ledger = Ledger::open(path_);
    if (!ledger) return kOther;
    Status admitted = ledger->admit(invocation("a-1", index % 2 == 0 ? "even" : "odd"), ::getpid());
    if (admitted) return kAdmitted;
    return admitted.error().code == Code::conflict ? kConflict : kOther;
  });
  EXPECT_EQ(std::count(codes.begin(), codes.end(), kAdmitted), 1);
  EXPECT_EQ(std::count(codes.begin(), codes.end(), kConflict), kWriters - 1);
  auto attempts = open().list(10);
  ASSERT_TRUE(attempts);
  EXPECT_EQ(attempts->size(), 1U);
}

// One supervisor's life: 0, or the step that failed.
int whole_attempt(const std::string& path, const std::string& id) {
  constexpr int kEvents = 20;
  auto ledger = Ledger::open(path);
  if (!ledger) return 1;
  const auto request = invocation(id);
  if (!ledger->admit(request, ::getpid())) return 2;
  for (int seq = 1; seq <= kEvents; ++seq) {
    auto event = ledger->append(id, seq == 1 ? "admitted" : "cancel-requested", R"({"kind":"text"})");
    if (!event || event->seq != static_cast<std::uint64_t>(seq)) return 3;
  }
  auto head = ledger->chain_head(id);
  if (!head || !ledger->finish(result_for(request, *head))) return 4;
  return 0;
}

void expect_all_intact(Ledger ledger) {
  auto attempts = ledger.list(100);
  ASSERT_TRUE(attempts);
  EXPECT_EQ(attempts->size(), static_cast<std::size_t>(kWriters));
  for (const Attempt& attempt : *attempts) {
    EXPECT_TRUE(attempt.finished);
    auto report = ledger.verify(attempt.id);
    ASSERT_TRUE(report) << report.error().line();
    EXPECT_TRUE(report->intact) << attempt.id << ": " << report->problem;
    EXPECT_EQ(report->events, 20U);
  }
}

TEST_F(LedgerTest, EightProcessesKeepEightIntactChains) {
  const auto codes =
      in_processes(kWriters, [&](int index) { return whole_attempt(path_, "a-" + std::to_string(index)); });
  EXPECT_EQ(codes, std::vector<int>(kWriters, 0));
  expect_all_intact(open());
}

TEST_F(LedgerTest, EightThreadsKeepEightIntactChains) {
  std::vector<int> codes(kWriters, -1);
  std::barrier start(kWriters);
  {
    std::vector<std::jthread> threads;
    for (int index = 0; index < kWriters; ++index) {
      threads.emplace_back([&, index] {
        start.arrive_and_wait();
        codes[static_cast<std::size_t>(index)] = whole_attempt(path_, "a-" + std::to_string(index));
      });
    }
  }
  EXPECT_EQ(codes, std::vector<int>(kWriters, 0));
  expect_all_intact(open());
}

TEST_F(LedgerTest, TwoWritersOfOneAttemptLeaveNoGap) {
  ASSERT_TRUE(open().admit(invocation("a-1"), 1));
  ASSERT_TRUE(open().append("a-1", "admitted", "{}"));
  const auto codes = in_processes(2, [&](int) {
    auto ledger = Ledger::open(path_);
    if (!ledger) return 1;
    for (int count = 0; count < 10; ++count) {
      if (!ledger->append("a-1", "cancel-requested", "{}")) return 2;
    }
    return 0;
  });
  EXPECT_EQ(codes, (std::vector<int>{0, 0}));
  auto report = open().verify("a-1");
  ASSERT_TRUE(report);
  EXPECT_TRUE(report->intact) << report->problem;
  EXPECT_EQ(report->events, 21U);
}

}  // namespace
}  // namespace cofferdam::ledger::testing
