// A hundred supervisors at once on a small host: nobody is told that the ledger is busy.
#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <optional>
#include <thread>

#include "ledger_fixture.h"

namespace cofferdam::ledger::testing {
namespace {

constexpr int kSupervisors = 100;
constexpr int kEvents = 20;

std::atomic<std::int64_t> longest = 0;  // write of this process, in ms

// One supervisor's life: 0, or the step that failed.
int live(const std::string& path, const std::string& id, std::string* why) {
  auto ledger = Ledger::open(path);
  if (!ledger) return *why = ledger.error().line(), 1;
  const auto request = invocation(id);
  auto admission = ledger->admit(request, ::getpid(), Capacity{});
  if (!admission) return *why = admission.error().line(), 2;
  for (int count = 2; count <= kEvents; ++count) {
    const auto begin = std::chrono::steady_clock::now();
    auto event = ledger->append(id, "cancel-requested", R"({"by":"command","reason":"x"})");
    if (!event) return *why = event.error().line(), 3;
    const auto took = std::chrono::steady_clock::now() - begin;
    longest = std::max(longest.load(), std::chrono::duration_cast<std::chrono::milliseconds>(took).count());
  }
  auto head = ledger->chain_head(id);
  if (!head) return *why = head.error().line(), 4;
  Status finished = ledger->finish(result_for(request, *head));
  if (!finished) return *why = finished.error().line(), 5;
  return 0;
}

void expect_all_there(Ledger ledger) {
  auto attempts = ledger.list(1000);
  ASSERT_TRUE(attempts);
  EXPECT_EQ(attempts->size(), static_cast<std::size_t>(kSupervisors));
  for (const Attempt& attempt : *attempts) {
    auto report = ledger.verify(attempt.id);
    ASSERT_TRUE(report) << report.error().line();
    EXPECT_TRUE(report->intact) << attempt.id << ": " << report->problem;
    EXPECT_EQ(report->events, static_cast<std::uint64_t>(kEvents));
  }
}

// In memory: what is shown is how writers take turns, not how long a busy disk needs for an fsync(2).
class Crowd : public LedgerTest {
 protected:
  void SetUp() override {
    LedgerTest::SetUp();
    auto made = TempDir::create("/dev/shm", "ledger.");
    ASSERT_TRUE(made) << made.error().line();
    memory_.emplace(*std::move(made));
    path_ = ledger_path(memory_->path());
  }

 private:
  std::optional<TempDir> memory_;
};

TEST_F(Crowd, AHundredProcessesWriteAndNobodyIsToldBusy) {
  const auto begin = std::chrono::steady_clock::now();
  const auto codes = in_processes(kSupervisors, [&](int index) {
    std::string why;
    const int code = live(path_, "a-" + std::to_string(index), &why);
    if (code != 0) fmt::print(stderr, "supervisor {}: {}\n", index, why);
    return code;
  });
  const auto took = std::chrono::steady_clock::now() - begin;
  RecordProperty("ms", static_cast<int>(std::chrono::duration_cast<std::chrono::milliseconds>(took).count()));
  EXPECT_EQ(codes, std::vector<int>(kSupervisors, 0));
  expect_all_there(open());
}

TEST_F(Crowd, AHundredThreadsWriteWhileOthersRead) {
  { Ledger made = open(); }
  std::vector<int> codes(kSupervisors, -1);
  std::atomic<bool> over = false;
  std::atomic<int> reads = 0;
  std::string trouble;
  {
    // As `list`, `show` and a log reader would, each time with a connection of its own.
    std::jthread reader([&] {
      while (!over) {
        auto ledger = Ledger::open(path_);
        if (!ledger) return void(trouble = ledger.error().line());
        auto list = ledger->list(10);
        if (!list) return void(trouble = list.error().line());
        if (list->empty()) continue;
        auto found = ledger->find(list->back().id);
        auto events = ledger->events(list->back().id);
        if (!found || !events) return void(trouble = "find or events");
        ++reads;
      }
    });
    {
      std::vector<std::jthread> threads;
      for (int index = 0; index < kSupervisors; ++index) {
        threads.emplace_back([&, index] {
          std::string why;
          codes[static_cast<std::size_t>(index)] = live(path_, "a-" + std::to_string(index), &why);
          if (!why.empty()) fmt::print(stderr, "supervisor {}: {}\n", index, why);
        });
      }
    }
    over = true;
  }
  RecordProperty("longest_write_ms", static_cast<int>(longest.load()));
  EXPECT_EQ(trouble, "");
  EXPECT_GT(reads.load(), 0);
  EXPECT_EQ(codes, std::vector<int>(kSupervisors, 0));
  expect_all_there(open());
}

}  // namespace
}  // namespace cofferdam::ledger::testing
