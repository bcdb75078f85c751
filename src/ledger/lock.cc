#include "ledger/lock.h"

#include <fcntl.h>
#include <fmt/core.h>
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

// A lock with a bounded wait is a poll (fcntl(2) has none). Two bytes of the file are locked: the turnstile,
// which only the next writer holds, and behind it the lock itself. Without it a writer that comes again at
// once would always be faster than those who sleep, and with many of them one could wait for very long.
constexpr off_t kTurnstile = 0;
constexpr off_t kLock = 1;
// A holder needs about a millisecond, most of it one fsync(2). The pauses are drawn anew each time, so that
// many waiters do not march in step.
constexpr int kMinPauseUs = 500;
constexpr int kMaxPauseUs = 6000;
constexpr int kMaxPauseOfNextUs = 200;

std::chrono::microseconds pause(off_t byte) {
  thread_local std::minstd_rand random(std::random_device{}());
  const int longest = byte == kLock ? kMaxPauseOfNextUs : kMaxPauseUs;
  return std::chrono::microseconds(
      std::uniform_int_distribution<int>(std::min(kMinPauseUs, longest / 2), longest)(random));
}

// Of the open file description, so that threads exclude each other as processes do; the kernel gives it back
// when its holder dies.
int set_lock(int fd, off_t byte, short type) {
  struct flock lock {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  lock.l_start = byte;
  lock.l_len = 1;
  return ::fcntl(fd, F_OFD_SETLK, &lock);
}

// False: not until `end`.
Result<bool> wait_for(int fd, off_t byte, SteadyClock::time_point end) {
  while (set_lock(fd, byte, F_WRLCK) != 0) {
    if (errno == EINTR) continue;
    if (errno != EAGAIN && errno != EACCES) return sys_error("cannot lock the ledger", errno);
    if (SteadyClock::now() >= end) return false;
    std::this_thread::sleep_for(pause(byte));
  }
  return true;
}

}  // namespace

FileLock::Held::~Held() {
  if (fd_ >= 0) set_lock(fd_, kLock, F_UNLCK);
}

Result<FileLock::Held> FileLock::take(std::chrono::milliseconds bound) {
  if (!fd_.valid()) {
    TRY(fd_, open_file(path_, O_RDWR | O_CREAT, 0600));
  }
  const auto end = SteadyClock::now() + bound;
  TRY(const bool next, wait_for(fd_.get(), kTurnstile, end));
  if (!next) return too_long(bound);
  auto taken = wait_for(fd_.get(), kLock, end);
  set_lock(fd_.get(), kTurnstile, F_UNLCK);
  if (!taken) return std::move(taken).error();
  if (!*taken) return too_long(bound);
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
