#include "init/sampler.h"

#include <fcntl.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include "init/protocol.h"
#include "init/sys.h"

namespace cofferdam::init {
namespace {

constexpr std::uint64_t kNothingBytes = 64U << 10U;

constexpr std::uint64_t kPeriodUs = 200'000;
// Thousands of processes take longer to look at: never more than a tenth of one processor goes into that.
constexpr std::uint64_t kRestPerLook = 10;
constexpr std::uint64_t kLongestRestUs = 2'000'000;

// getdents64(2): what the kernel writes, since libc's readdir(3) allocates.
struct Entry {
  std::uint64_t inode;
  std::int64_t offset;
  unsigned short size;
  unsigned char type;
  char name[1];
};

std::uint64_t spent_us() {
  timespec at{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &at);  // of ours: a busy host must not make us look away
  return static_cast<std::uint64_t>(at.tv_sec) * 1'000'000 + static_cast<std::uint64_t>(at.tv_nsec) / 1000;
}

// The text of a small file below /proc, ended by a NUL; false for a process that has just gone, or is closed
// to us.
bool read_small(int proc, const char* pid, const char* name, char* text, std::size_t room) {
  char path[64];
  const int length = ::snprintf(path, sizeof path, "%s/%s", pid, name);
  if (length < 0 || length >= static_cast<int>(sizeof path)) return false;
  const int fd = ::openat(proc, path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  const ssize_t n = ::read(fd, text, room - 1);
  ::close(fd);
  text[n > 0 ? n : 0] = '\0';
  return n > 0;
}

// proc(5), /proc/PID/stat: the name is in brackets and may hold anything; fields are counted behind the last
// one.
const char* stat_field(const char* text, int wanted) {
  const char* at = ::strrchr(text, ')');
  for (int field = 2; at != nullptr && field < wanted; ++field) {
    at = ::strchr(at + 1, ' ');
  }
  return at == nullptr ? "" : at + 1;
}

constexpr int kThreads = 20;
constexpr int kResident = 24;

}  // namespace

void Sampler::start(const plan::Plan& plan) {
  memory_limit_ = plan.memory_bytes;
  work_ = plan.expected.work_bytes != 0;
  pids_limit_ = plan.pids;
  if (memory_limit_ == 0 && pids_limit_ == 0) return;
  proc_ = ::open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  check(proc_ >= 0, "open /proc");
  timer_ = ::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
  check(timer_ >= 0, "timerfd");
  arm(kPeriodUs);
}

void Sampler::arm(std::uint64_t after_us) {
  itimerspec when{};
  when.it_value.tv_sec = static_cast<time_t>(after_us / 1'000'000);
  when.it_value.tv_nsec = static_cast<long>(after_us % 1'000'000) * 1000;
  ::timerfd_settime(timer_, 0, &when, nullptr);
}

template <typename F>
void Sampler::each_process(F act) {
  alignas(Entry) static char buffer[16384];
  if (::lseek(proc_, 0, SEEK_SET) != 0) return;
  while (true) {
    const long n = ::syscall(SYS_getdents64, proc_, buffer, sizeof buffer);
    if (n <= 0) return;
    for (long at = 0; at < n;) {
      const auto* entry = reinterpret_cast<const Entry*>(buffer + at);  // NOLINT
      at += entry->size;
      const bool process = entry->name[0] >= '1' && entry->name[0] <= '9';
      if (process && ::strcmp(entry->name, "1") != 0) act(entry->name);
    }
  }
}

Sampler::Seen Sampler::count() {
  static const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  Seen seen;
  each_process([&](const char* pid) {
    char text[1024];
    if (!read_small(proc_, pid, "stat", text, sizeof text)) return;
    seen.pids += ::strtoull(stat_field(text, kThreads), nullptr, 10);
    seen.bytes += ::strtoull(stat_field(text, kResident), nullptr, 10) * page;
  });
  return seen;
}

// Pages that processes share are counted once in all. A process that may not be looked into so closely counts
// in full.
std::uint64_t Sampler::count_proportionally() {
  static const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  std::uint64_t bytes = 0;
  each_process([&](const char* pid) {
    char text[2048];
    const char* line = nullptr;
    if (read_small(proc_, pid, "smaps_rollup", text, sizeof text)) line = ::strstr(text, "\nPss:");
    if (line != nullptr) {
      bytes += ::strtoull(line + 5, nullptr, 10) * 1024;
    } else if (read_small(proc_, pid, "stat", text, sizeof text)) {
      bytes += ::strtoull(stat_field(text, kResident), nullptr, 10) * page;
    }
  });
  return bytes;
}

bool Sampler::judge() {
  Seen seen = count();
  const bool closer = memory_limit_ != 0 && seen.bytes > memory_limit_;
  if (closer) seen.bytes = std::min(seen.bytes, count_proportionally());
  peak_bytes_ = std::max(peak_bytes_, seen.bytes);
  peak_pids_ = std::max(peak_pids_, seen.pids);
  if (reported_) return false;
  const char* over = nullptr;
  if (pids_limit_ != 0 && seen.pids >= pids_limit_) over = "pids";
  if (closer && seen.bytes > memory_limit_) over = "memory";
  if (over == nullptr) return false;
  reported_ = true;
  send_text(plan::from_init::over, fields(over, number(over[0] == 'm' ? seen.bytes : seen.pids)));
  return true;
}

bool Sampler::look() {
  std::uint64_t expirations = 0;
  const ssize_t ignored = ::read(timer_, &expirations, sizeof expirations);
  (void)ignored;
  const std::uint64_t begin = spent_us();
  look_at_storage();
  const bool over = judge();
  arm(std::clamp((spent_us() - begin) * kRestPerLook, kPeriodUs, kLongestRestUs));
  return over;
}

void Sampler::look_at_storage() {
  if (timer_ < 0) return;
  const auto report = [](bool* told, bool full, const char* what) {
    if (!full || *told) return;
    *told = true;
    send_text(plan::from_init::full, what);
  };
  struct statvfs info {};
  // A tree that cannot be written may lie on the host's own file system.
  if (work_ && ::statvfs("/workspace", &info) == 0) {
    // ext4 keeps some blocks for itself, and the last ones go to no whole file: a thousandth is nothing, and
    // of a small one so are 64 KiB.
    const std::uint64_t small = std::min<std::uint64_t>(kNothingBytes / info.f_frsize, info.f_blocks / 16);
    report(&work_bytes_full_, info.f_bavail <= std::max<std::uint64_t>(info.f_blocks / 1000, small),
           "work-bytes");
    report(&work_inodes_full_, info.f_ffree == 0, "work-inodes");
  }
  for (const char* path : {"/home/agent", "/tmp", "/dev/shm"}) {
    if (::statvfs(path, &info) != 0) continue;
    report(&scratch_full_, info.f_bfree == 0 || info.f_ffree == 0, "scratch");
  }
}

}  // namespace cofferdam::init
