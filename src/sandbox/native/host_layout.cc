#include "sandbox/native/host_layout.h"

#include <sys/stat.h>
#include <unistd.h>

#include <array>

#include "base/file.h"

namespace cofferdam::sandbox {

Result<HostLayout> read_host_layout() {
  HostLayout layout;
  for (const char* name : {"bin", "sbin", "lib", "lib32", "lib64", "libx32"}) {
    const std::string path = std::string("/") + name;
    struct stat info {};
    if (::lstat(path.c_str(), &info) != 0) continue;
    if (S_ISLNK(info.st_mode)) {
      std::array<char, 256> text{};
      ssize_t n = ::readlink(path.c_str(), text.data(), text.size());
      if (n > 0) layout.root_entries.push_back({name, std::string(text.data(), static_cast<std::size_t>(n))});
    } else if (S_ISDIR(info.st_mode)) {
      layout.root_entries.push_back({name, {}});
    }
  }
  // What programs below /usr need to find each other: cc -> /etc/alternatives/cc, and the loader's cache.
  for (const char* name : {"alternatives", "ld.so.cache"}) {
    if (exists(std::string("/etc/") + name)) layout.etc_entries.push_back(name);
  }
  if (auto zone = read_file("/etc/localtime", 1U << 20U)) layout.time_zone = *zone;
  return layout;
}

}  // namespace cofferdam::sandbox
