#include "ledger/lock.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <random>
#include <thread>

namespace cofferdam::ledger {
namespace {

using SteadyClock = std::chrono::steady_clock;

// flock(2) has no bound of its own, so the wait is a poll. A holder needs a few milliseconds (one fsync); the
// pauses are drawn anew each time, so that many waiters neither march in step nor starve one of them.
constexpr int kMinPauseUs = 500;
constexpr int kMaxPauseUs = 6000;

std::chrono::microseconds pause() {
  thread_local std::minstd_rand random(std::random_device{}());
  return std::chrono::microseconds(std::uniform_int_distribution<int>(kMinPauseUs, kMaxPauseUs)(random));
}

}  // namespace

FileLock::Held::~Held() {
  if (fd_ >= 0) ::flock(fd_, LOCK_UN);
}

Result<FileLock::Held> FileLock::take(std::chrono::milliseconds bound) {
  if (!fd_.valid()) {
    TRY(fd_, open_file(path_, O_RDWR | O_CREAT, 0600));
  }
  const auto end = SteadyClock::now() + bound;
  while (::flock(fd_.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno == EINTR) continue;
    if (errno != EWOULDBLOCK) return sys_error("cannot lock " + path_, errno);
    if (SteadyClock::now() >= end) return too_long(bound);
    std::this_thread::sleep_for(pause());
  }
  // For the message of whoever waits for us in vain; nothing else depends on it.
  const std::string pid = fmt::format("{:<10}\n", ::getpid());
  const ssize_t ignored = ::pwrite(fd_.get(), pid.data(), pid.size(), 0);
  (void)ignored;
  return Held(fd_.get());
}

Error FileLock::too_long(std::chrono::milliseconds bound) const {
  std::array<char, 16> text{};
  const ssize_t size = ::pread(fd_.get(), text.data(), text.size() - 1, 0);
  const long pid = size > 0 ? std::strtol(text.data(), nullptr, 10) : 0;
  const std::string holder = pid > 0 ? fmt::format("process {}", pid) : std::string("another process");
  return make_error(Code::timeout,
                    fmt::format("{} has kept the ledger locked for {} ms, which is as long as is waited",
                                holder, bound.count()),
                    fmt::format("see whether {} hangs, and end it: the lock goes with it", holder));
}

}  // namespace cofferdam::ledger
