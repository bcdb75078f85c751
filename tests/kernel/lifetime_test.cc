// The end of a box: when its supervisor is stopped or killed, and after many of them.
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <functional>

#include "base/io.h"
#include "base/text.h"
#include "kernel/fixture.h"

namespace cofferdam::test {
namespace {

using Clock = std::chrono::steady_clock;
constexpr int kBoundMs = 60'000;

// The value of one field of /proc/PID/status; empty for a process that is gone.
std::string status_field(const std::string& pid, const std::string& name) {
  auto status = read_file("/proc/" + pid + "/status", 65536);
  if (!status) return {};
  for (const std::string& line : split(*status, '\n')) {
    if (starts_with(line, name + ":")) return std::string(trim(line.substr(name.size() + 1)));
  }
  return {};
}

// One process, held by a descriptor: its number cannot come to mean another one.
struct Held {
  std::string pid;
  std::string name;
  UniqueFd fd;
  bool ended(int timeout_ms) const {
    auto readable = wait_readable(fd.get(), timeout_ms);
    return readable && *readable;
  }
};

// Children, their children, and so on.
std::vector<Held> descendants(pid_t of) {
  std::vector<Held> held;
  std::vector<std::string> parents = {std::to_string(of)};
  auto names = list_dir("/proc");
  if (!names) return held;
  for (std::size_t i = 0; i < parents.size(); ++i) {
    for (const std::string& pid : *names) {
      if (pid.find_first_not_of("0123456789") != std::string::npos) continue;
      if (status_field(pid, "PPid") != parents[i]) continue;
      parents.push_back(pid);
      UniqueFd fd(static_cast<int>(::syscall(SYS_pidfd_open, std::stoi(pid), 0)));
      if (fd.valid()) held.push_back({pid, status_field(pid, "Name"), std::move(fd)});
    }
  }
  return held;
}

std::size_t named(const std::vector<Held>& processes, const std::string& name) {
  return static_cast<std::size_t>(
      std::count_if(processes.begin(), processes.end(), [&](const Held& one) { return one.name == name; }));
}

bool becomes(const std::function<bool()>& condition) {
  const auto end = Clock::now() + std::chrono::milliseconds(kBoundMs);
  while (Clock::now() < end) {
    if (condition()) return true;
    ::poll(nullptr, 0, 5);  // a poll of a condition, not a wait for time to pass
  }
  return false;
}

bool is_stopped(pid_t pid) {
  return starts_with(status_field(std::to_string(pid), "State"), "T");
}

class Lifetime : public Kernel {
 protected:
  // The driver with a box whose program stays. Everything in it is running when this returns.
  void hold(std::chrono::milliseconds deadline) {
    auto out = make_pipe();
    ASSERT_TRUE(out);
    SpawnOptions options = driver_options("hold", {std::to_string(deadline.count())});
    options.fds = {{out->write.get(), 1}};
    auto child = spawn(options);
    ASSERT_TRUE(child) << child.error().line();
    out->write.reset();
    supervisor_ = std::move(*child);
    bool would_block = false;
    auto said = read_some(out->read.get(), 64, &would_block);
    ASSERT_TRUE(said);
    ASSERT_EQ(*said, "staying\n") << "the driver did not start its box";
    processes_ = descendants(supervisor_.pid());
    // Keeper, the two processes of the box's init, the program and its grandchild.
    ASSERT_EQ(named(processes_, "cofferdam-init"), 3U);
    ASSERT_EQ(named(processes_, "box-probe"), 2U);
  }
  const std::vector<Held>& processes() const { return processes_; }
  Child& supervisor() { return supervisor_; }

 private:
  Child supervisor_;
  std::vector<Held> processes_;
};

// A wedged supervisor: stopped, its end of the socket stays open and every deadline of its own is silent.
TEST_P(Lifetime, InitEnforcesTheDeadlineWhenTheSupervisorIsStopped) {
  if (!ready()) return;
  hold(std::chrono::seconds(6));
  if (HasFatalFailure()) return;
  supervisor().signal(SIGSTOP);
  ASSERT_TRUE(becomes([&] { return is_stopped(supervisor().pid()); }));
  for (const Held& one : processes()) {
    EXPECT_FALSE(one.ended(0)) << "the control: stopping the supervisor alone ends nothing: " << one.name;
  }
  for (const Held& one : processes()) {
    if (one.name != "box-probe") continue;
    EXPECT_TRUE(one.ended(kBoundMs)) << "a program outlived its deadline";
  }
  auto inits_left = [&] {
    return std::count_if(processes().begin(), processes().end(),
                         [](const Held& one) { return one.name == "cofferdam-init" && !one.ended(0); });
  };
  EXPECT_TRUE(becomes([&] { return inits_left() == 1; })) << inits_left();
  EXPECT_EQ(inits_left(), 1) << "only the storage's keeper is left, for the work in it";
  EXPECT_TRUE(is_stopped(supervisor().pid())) << "it was stopped all along";
}

TEST_P(Lifetime, NothingOutlivesAKilledSupervisor) {
  if (!ready()) return;
  hold(std::chrono::minutes(10));
  if (HasFatalFailure()) return;
  for (const Held& one : processes()) EXPECT_FALSE(one.ended(0)) << "the control: " << one.name << " runs";
  supervisor().signal(SIGKILL);
  ASSERT_TRUE(supervisor().wait(std::chrono::seconds(30)));
  for (const Held& one : processes()) {
    EXPECT_TRUE(one.ended(kBoundMs)) << one.name << " outlived its supervisor";
  }
}

// "Gone" is the kernel's word, so a box that was killed has to be gone when it is said.
TEST_P(Lifetime, AKilledBoxIsGoneWhenItIsSaidToBe) {
  if (!ready()) return;
  EXPECT_EQ(driver("kill", {"30"}), "survivors 0\n");
}

TEST_P(Lifetime, FiftyBoxesLeaveNothingBehind) {
  if (!ready()) return;
  auto mounts_before = read_file("/proc/self/mountinfo", 1U << 20U);
  const std::string said = driver("sequence", {"50"});
  const std::size_t middle = said.find("--\n");
  ASSERT_NE(middle, std::string::npos) << said;
  EXPECT_EQ(said.substr(middle + 3), said.substr(0, middle)) << "descriptors, mounts and children";
  EXPECT_NE(said.find("children 0\n"), std::string::npos) << said;
  auto mounts_after = read_file("/proc/self/mountinfo", 1U << 20U);
  ASSERT_TRUE(mounts_before && mounts_after);
  EXPECT_EQ(*mounts_after, *mounts_before);
}

COFFERDAM_FOR_BOTH_USERS(Lifetime);

}  // namespace
}  // namespace cofferdam::test
