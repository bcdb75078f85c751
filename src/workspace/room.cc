#include "workspace/room.h"

#include <fmt/core.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>

#include "base/file.h"

namespace cofferdam::workspace {
namespace {

constexpr std::uint64_t kLeftBytes = 1ULL << 30U;
// An image is one file; the rest is for the account of the attempt.
constexpr std::uint64_t kWantedInodes = 64;
constexpr std::uint64_t kLeftInodes = 1000;
constexpr std::uint64_t kMiB = 1ULL << 20U;

Error no_room(const std::string& where, const char* what, std::uint64_t free, std::uint64_t wanted,
              const std::string& hint) {
  return make_error(Code::exhausted,
                    fmt::format("{} has {} {} free; an attempt's work tree could take {} of them, and some "
                                "must be left",
                                where, free, what, wanted),
                    hint);
}

}  // namespace

bool fits(const Room& room, std::uint64_t wanted, std::uint64_t most_left) {
  const std::uint64_t left = std::min(room.total / 20, most_left);
  return room.free >= left && room.free - left >= wanted;
}

Status check_disk(const std::string& folder, std::uint64_t bytes) {
  struct statvfs info {};
  if (::statvfs(folder.c_str(), &info) != 0) return sys_error("cannot look at " + folder, errno);
  const Room room{info.f_blocks * info.f_frsize, info.f_bavail * info.f_frsize};
  if (!fits(room, bytes, kLeftBytes)) {
    return no_room("the disk of " + folder, "MiB", room.free / kMiB, bytes / kMiB,
                   "free some space there, or lower limits.work_bytes");
  }
  // Some file systems have no fixed number of inodes and report none.
  const Room inodes{info.f_files, info.f_favail};
  if (inodes.total != 0 && !fits(inodes, kWantedInodes, kLeftInodes)) {
    return no_room("the disk of " + folder, "inodes", inodes.free, kWantedInodes,
                   "remove files that are not needed there");
  }
  return {};
}

Status check_memory(std::uint64_t bytes) {
  TRY(const std::string info, read_file("/proc/meminfo", 1U << 16U));
  const auto field = [&info](const char* name) {
    const std::size_t at = info.find(name);
    if (at == std::string::npos) return 0ULL;
    return std::strtoull(info.c_str() + info.find(':', at) + 1, nullptr, 10) * 1024;
  };
  const Room room{field("MemTotal:"), field("MemAvailable:")};
  if (fits(room, bytes, kLeftBytes / 2)) return {};
  return no_room("the host's memory", "MiB", room.free / kMiB, bytes / kMiB,
                 "free some memory, or lower limits.work_bytes");
}

}  // namespace cofferdam::workspace
