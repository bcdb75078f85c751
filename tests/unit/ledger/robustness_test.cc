// A ledger that cannot be written, or is not what it was: a clear error, and nothing half-written.
#include <SQLiteCpp/SQLiteCpp.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>

#include <algorithm>
#include <fstream>
#include <thread>

#include "ledger/lock.h"
#include "ledger_fixture.h"

namespace cofferdam::ledger::testing {
namespace {

Options impatient() {
  Options options;
  options.write_wait = std::chrono::milliseconds(200);
  return options;
}

TEST_F(LedgerTest, AWriterThatHangsIsNamedAndReadersGoOn) {
  ASSERT_TRUE(open().admit(invocation("a-1"), 1));
  auto held = make_pipe();
  ASSERT_TRUE(held);
  const pid_t hung = ::fork();
  if (hung == 0) {
    FileLock lock(path_ + ".write-lock");
    const auto taken = lock.take(std::chrono::seconds(5));
    if (::write(held->write.get(), taken ? "y" : "n", 1) == 1) ::pause();
    ::_exit(0);
  }
  char locked = 0;
  ASSERT_EQ(::read(held->read.get(), &locked, 1), 1);
  ASSERT_EQ(locked, 'y');
  Ledger ledger = open(impatient());
  auto late = ledger.append("a-1", "admitted", "{}");
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, Code::timeout);
  EXPECT_NE(late.error().what.find("process " + std::to_string(hung)), std::string::npos)
      << late.error().what;
  EXPECT_NE(late.error().what.find("200 ms"), std::string::npos) << late.error().what;
  EXPECT_TRUE(ledger.list(10)) << "readers do not wait for writers";
  // The kernel gives the lock back; that is the control, too.
  ASSERT_EQ(::kill(hung, SIGKILL), 0);
  ASSERT_EQ(::waitpid(hung, nullptr, 0), hung);
  auto after = ledger.append("a-1", "admitted", "{}");
  ASSERT_TRUE(after) << after.error().line();
  EXPECT_EQ(after->seq, 1U);
}

TEST_F(LedgerTest, AProgramThatDoesNotKnowOurLockIsWaitedForWithABound) {
  Ledger ledger = open(impatient());
  ASSERT_TRUE(ledger.admit(invocation("a-1"), 1));
  SQLite::Database editor(path_, SQLite::OPEN_READWRITE);
  editor.exec("BEGIN IMMEDIATE");
  auto late = ledger.append("a-1", "admitted", "{}");
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, Code::timeout);
  EXPECT_NE(late.error().line().find("locked"), std::string::npos) << late.error().line();
  editor.exec("ROLLBACK");
  EXPECT_TRUE(ledger.append("a-1", "admitted", "{}"));
  expect_intact(ledger, "a-1");
}

TEST_F(LedgerTest, AClockThatStepsBackChangesNoOrder) {
  std::int64_t at = 1'800'000'000'000;
  Options options;
  options.clock = [&at] { return Timestamp{at -= 3'600'000}; };
  Ledger ledger = open(std::move(options));
  for (const char* id : {"a-1", "a-2", "a-3"}) {
    ASSERT_TRUE(ledger.admit(invocation(id), 1, Capacity{1, 0}));
  }
  ASSERT_TRUE(ledger.append_all("a-1", {{"cloned"}, {"settled"}, {"finished"}}));
  finish(ledger, invocation("a-1"));
  auto events = ledger.events("a-1");
  ASSERT_TRUE(events);
  ASSERT_EQ(events->size(), 4U);
  EXPECT_GT(events->front().at, events->back().at) << "the times are as the clock had them";
  EXPECT_EQ(types_of(ledger, "a-1"), "admitted cloned settled finished");
  expect_intact(ledger, "a-1");
  auto list = ledger.list(10);
  ASSERT_TRUE(list);
  ASSERT_EQ(list->size(), 3U);
  EXPECT_EQ(list->front().id, "a-3") << "newest first, whatever its clock said";
  auto third = ledger.leave_queue("a-3", Capacity{1, 0});
  ASSERT_TRUE(third);
  EXPECT_FALSE(third->admitted) << "the queue goes by arrival";
  auto second = ledger.leave_queue("a-2", Capacity{1, 0});
  ASSERT_TRUE(second);
  EXPECT_TRUE(second->admitted);
}

// Runs `body` in a child that has a small tmpfs of its own at `folder`. 77: it could not have one.
int with_tmpfs(const std::string& folder, const char* size, const std::function<int()>& body) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    const int flags = ::geteuid() == 0 ? CLONE_NEWNS : CLONE_NEWNS | CLONE_NEWUSER;
    if (::unshare(flags) != 0 || ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        ::mount("tmpfs", folder.c_str(), "tmpfs", 0, size) != 0) {
      ::_exit(77);
    }
    ::_exit(body());
  }
  int status = 0;
  EXPECT_EQ(::waitpid(pid, &status, 0), pid);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// Says where `condition` did not hold; the children of with_tmpfs have nothing else.
int fail(int code, const std::string& why) {
  std::fprintf(stderr, "step %d: %s\n", code, why.c_str());  // NOLINT
  return code;
}

int fill_and_go_on(const std::string& folder, const std::string& path) {
  const std::string filler = R"({"n":")" + std::string(4000, 'x') + R"("})";
  auto ledger = Ledger::open(path);
  if (!ledger) return fail(1, ledger.error().line());
  if (!ledger->admit(invocation("a-1"), 1, Capacity{})) return 2;
  std::uint64_t written = 1;
  std::optional<Error> full;
  while (!full.has_value() && written < 10'000) {
    auto event = ledger->append("a-1", "cancel-requested", filler);
    if (event) {
      ++written;
    } else {
      full = event.error();
    }
  }
  if (!full.has_value()) return 3;
  if (full->code != Code::exhausted) return fail(4, full->line());
  if (full->hint.find("free space") == std::string::npos) return fail(5, full->line());
  if (ledger->admit(invocation("a-2"), 1)) return 6;
  auto report = ledger->verify("a-1");
  if (!report || !report->intact || report->events != written) return fail(7, "not as it was written");
  // The control: with room again, the same ledger goes on, and so does one that is opened anew.
  if (::mount("tmpfs", folder.c_str(), "tmpfs", MS_REMOUNT, "size=64m") != 0) return 8;
  auto event = ledger->append("a-1", "cancel-requested", filler);
  if (!event || event->seq != written + 1) return fail(9, event ? "a gap" : event.error().line());
  auto again = Ledger::open(path);
  if (!again || !again->admit(invocation("a-2"), 1)) return 10;
  report = again->verify("a-1");
  return report && report->intact && report->events == written + 1 ? 0 : 11;
}

TEST_F(LedgerTest, AFullDiskLosesOnlyWhatWasRefused) {
  const int code =
      with_tmpfs(folder_->path(), "size=600k", [&] { return fill_and_go_on(folder_->path(), path_); });
  if (code == 77) GTEST_SKIP() << "no mount namespace here";
  EXPECT_EQ(code, 0);
}

int write_on_read_only(const std::string& folder, const std::string& path) {
  {
    auto ledger = Ledger::open(path);
    if (!ledger || !ledger->admit(invocation("a-1"), 1)) return 1;
  }
  if (::mount("tmpfs", folder.c_str(), "tmpfs", MS_REMOUNT | MS_RDONLY, nullptr) != 0) return 2;
  auto closed = Ledger::open(path);
  if (closed) {
    Status admitted = closed->admit(invocation("a-2"), 1);
    if (admitted) return 3;
    if (admitted.error().line().find("writable") == std::string::npos)
      return fail(4, admitted.error().line());
  } else if (closed.error().line().find("writable") == std::string::npos) {
    return fail(5, closed.error().line());
  }
  if (::mount("tmpfs", folder.c_str(), "tmpfs", MS_REMOUNT, nullptr) != 0) return 6;
  auto open = Ledger::open(path);  // the control
  if (!open) return fail(7, open.error().line());
  auto found = open->find("a-2");
  return found && !found->has_value() && open->admit(invocation("a-2"), 1) ? 0 : 8;
}

TEST_F(LedgerTest, AReadOnlyFolderIsSaidToBeOne) {
  const int code =
      with_tmpfs(folder_->path(), "size=4m", [&] { return write_on_read_only(folder_->path(), path_); });
  if (code == 77) GTEST_SKIP() << "no mount namespace here";
  EXPECT_EQ(code, 0);
}

class DamageTest : public LedgerTest {
 protected:
  void SetUp() override {
    LedgerTest::SetUp();
    Ledger ledger = open();
    for (const char* id : {"a-1", "a-2"}) {
      ASSERT_TRUE(ledger.admit(invocation(id), 1, Capacity{}));
      for (int i = 0; i < 10; ++i) {
        ASSERT_TRUE(ledger.append(id, "cancel-requested", R"({"reason":"needle"})"));
      }
    }
    ASSERT_TRUE(ledger.append_all("a-1", {{"settled"}, {"finished"}}));
    finish(ledger, invocation("a-1"));
    original_ = account(ledger);
    ASSERT_FALSE(original_.empty());
  }
  std::string bytes() const {
    auto read = read_file(path_, 64U << 20U);
    EXPECT_TRUE(read);
    return read ? *read : "";
  }
  void replace(const std::string& bytes) const {
    for (const char* suffix : {"", "-wal", "-shm"}) ::unlink((path_ + suffix).c_str());
    std::ofstream(path_, std::ios::binary) << bytes;
  }
  // Everything that is stored, as a text; empty when anything cannot be read or does not hold.
  static std::string account(Ledger& ledger) {
    auto list = ledger.list(100);
    if (!list) return {};
    std::string out;
    for (const Attempt& attempt : *list) {
      auto report = ledger.verify(attempt.id);
      auto events = ledger.events(attempt.id);
      auto found = ledger.find(attempt.id);
      if (!report || !report->intact || !events || !found || !found->has_value()) return {};
      out += attempt.id + (*found)->invocation + (*found)->result.value_or("-");
      for (const contract::Event& event : *events) out += contract::encode_event(event);
    }
    return out;
  }
  std::string original_;
};

TEST_F(DamageTest, AChangedByteInAnEventIsFound) {
  std::string changed = bytes();
  const std::size_t at = changed.rfind("needle");
  ASSERT_NE(at, std::string::npos);
  changed[at] = 'N';
  replace(changed);
  Ledger ledger = open();
  auto first = ledger.verify("a-1");
  auto second = ledger.verify("a-2");
  ASSERT_TRUE(first && second);
  EXPECT_NE(first->intact, second->intact) << "exactly the one that was changed";
}

// One byte of the file at a time: the ledger is refused, or the damage is found, or it does not matter to
// anything that is stored. Never is something else than what was written given out as intact.
TEST_F(DamageTest, NoFlippedByteIsGivenOutAsIntact) {
  const std::string before = bytes();
  std::size_t found = 0;
  for (std::size_t at = 0; at < before.size(); at += 211) {
    std::string changed = before;
    changed[at] = static_cast<char>(changed[at] ^ 0x55);
    replace(changed);
    auto ledger = Ledger::open(path_);
    const std::string now = ledger ? account(*ledger) : "";
    if (now.empty()) ++found;
    const bool shorter = now.size() < original_.size();  // an attempt's row lost from an index
    EXPECT_TRUE(now.empty() || now == original_ || shorter) << "at byte " << at;
  }
  EXPECT_GT(found, 0U);
  replace(before);
  Ledger ledger = open();
  EXPECT_EQ(account(ledger), original_) << "the control";
}

TEST_F(DamageTest, ATruncatedFileIsAnErrorAndIsLeftAsItIs) {
  const std::string before = bytes();
  for (const std::size_t size : {before.size() / 2, std::size_t{8192}, std::size_t{1000}, std::size_t{50}}) {
    replace(before.substr(0, size));
    auto ledger = Ledger::open(path_);
    Status admitted = ledger ? ledger->admit(invocation("a-3"), 1) : Status(ledger.error());
    const std::string now = ledger ? account(*ledger) : "";
    EXPECT_EQ(now, "") << size << " bytes are given out as a whole ledger";
    if (!admitted) {
      EXPECT_EQ(admitted.error().code, Code::protocol) << size << ": " << admitted.error().line();
      EXPECT_NE(admitted.error().hint.find("damaged"), std::string::npos) << admitted.error().line();
    }
  }
  replace(before);
  Ledger ledger = open();
  EXPECT_EQ(account(ledger), original_) << "the control";
}

// What only the write-ahead log had is gone, and with it the newest events: nothing inside can show that.
// What is left is a whole ledger of a moment before.
TEST_F(DamageTest, WithoutItsLogItIsTheLedgerOfBefore) {
  Ledger writer = open();
  ASSERT_TRUE(writer.append("a-2", "cancel-requested", "{}"));
  const std::string before = bytes();
  ASSERT_TRUE(exists(path_ + "-wal"));
  const std::string copy = folder_->path() + "/copy.db";
  std::ofstream(copy, std::ios::binary) << before;
  auto ledger = Ledger::open(copy);
  ASSERT_TRUE(ledger) << ledger.error().line();
  EXPECT_EQ(account(*ledger), original_);
  expect_intact(writer, "a-2");
}

// The schema itself is never only in the log: a lost log must not make an empty ledger.
TEST_F(LedgerTest, AFreshFileHasItsSchemaWithoutItsLog) {
  const Ledger ledger = open();
  auto bytes = read_file(path_, 1U << 20U);
  ASSERT_TRUE(bytes);
  const std::string copy = folder_->path() + "/copy.db";
  std::ofstream(copy, std::ios::binary) << *bytes;
  EXPECT_EQ(SQLite::Database(copy, SQLite::OPEN_READWRITE).execAndGet("PRAGMA user_version").getInt(), 2);
}

}  // namespace
}  // namespace cofferdam::ledger::testing
