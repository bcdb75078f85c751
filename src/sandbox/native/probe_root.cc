#include "sandbox/native/probe_root.h"

#include <fmt/core.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "base/file.h"
#include "base/text.h"

namespace cofferdam::sandbox {
namespace {

constexpr std::size_t kMaxMountInfo = 4U << 20U;

// The content of an overlay has size and times of the file below it, and its inode number, which may have a
// mark of the layer in the high bits: Documentation/filesystems/overlayfs.rst, "Inode properties".
bool is_same_file(const struct stat& left, const struct stat& right) {
  return static_cast<std::uint32_t>(left.st_ino) == static_cast<std::uint32_t>(right.st_ino) &&
         left.st_size == right.st_size && left.st_mtim.tv_sec == right.st_mtim.tv_sec &&
         left.st_mtim.tv_nsec == right.st_mtim.tv_nsec && left.st_ctim.tv_sec == right.st_ctim.tv_sec &&
         left.st_ctim.tv_nsec == right.st_ctim.tv_nsec;
}

// The landmark that is not the same in both; empty: all are.
std::string other_file(const contract::ProfileImage& image, const std::string& mounted) {
  if (image.landmarks.empty()) return "no file to compare";
  for (const std::string& path : image.landmarks) {
    struct stat verified {};
    struct stat seen {};
    const std::string below = "/" + path;
    if (::lstat((image.tree + below).c_str(), &verified) != 0 ||
        ::lstat((mounted + below).c_str(), &seen) != 0 || !is_same_file(verified, seen))
      return path;
  }
  return {};
}

}  // namespace

std::string usr_device(std::string_view mountinfo) {
  std::string device;
  for (const std::string& line : split(mountinfo, '\n')) {
    // "36 35 98:0 /root /mount/point rw,noatime ...": proc_pid_mountinfo(5)
    const std::vector<std::string> fields = split(line, ' ');
    if (fields.size() < 6 || fields[4] != "/usr") continue;
    const bool read_only = fields[5] == "ro" || starts_with(fields[5], "ro,");
    device = read_only && fields[3] == "/usr" ? fields[2] : "";
  }
  return device;
}

ProbeAnswer probe_root(std::uint64_t init, pid_t launcher, const contract::Profile& profile) {
  ProbeAnswer answer{"pinned-root", false, "the host's /usr"};
  if (!profile.image.has_value()) return answer;
  const std::string mounted = fmt::format("/proc/{}/root/image", launcher);
  struct stat image {};
  auto table = read_file(fmt::format("/proc/{}/mountinfo", init), kMaxMountInfo);
  if (!table || ::lstat(mounted.c_str(), &image) != 0) {
    answer.detail = "cannot look at what the box has mounted";
    return answer;
  }
  const std::string device = fmt::format("{}:{}", major(image.st_dev), minor(image.st_dev));
  if (const std::string found = usr_device(*table); found != device) {
    answer.detail =
        fmt::format("/usr is on device {}, the image on {}", found.empty() ? "unknown" : found, device);
    return answer;
  }
  if (const std::string other = other_file(*profile.image, mounted); !other.empty()) {
    answer.detail = "not the verified tree: " + other;
    return answer;
  }
  answer.enforced = true;
  answer.detail = fmt::format("{}, {} files compared", profile.image->id, profile.image->landmarks.size());
  return answer;
}

}  // namespace cofferdam::sandbox
