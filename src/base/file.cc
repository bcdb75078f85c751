#include "base/file.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <set>
#include <utility>

#include "base/fd.h"
#include "base/io.h"

namespace cofferdam {

Result<std::string> read_file(const std::string& path, std::size_t max_bytes) {
  TRY(UniqueFd fd, open_file(path, O_RDONLY));
  auto bytes = read_to_end(fd.get(), max_bytes);
  if (!bytes) return bytes.error().with(path);
  return bytes;
}

Status write_file_atomic(const std::string& path, std::string_view bytes, unsigned mode) {
  std::string temporary = path + ".tmp." + std::to_string(::getpid());
  TRY(UniqueFd fd, open_file(temporary, O_WRONLY | O_CREAT | O_EXCL, mode));
  Status written = write_all(fd.get(), bytes);
  if (written && ::fsync(fd.get()) != 0) written = sys_error("fsync " + temporary, errno);
  if (written && ::rename(temporary.c_str(), path.c_str()) != 0)
    written = sys_error("cannot write " + path, errno);
  if (!written) ::unlink(temporary.c_str());
  return written;
}

Status make_dirs(const std::string& path, unsigned mode) {
  for (std::size_t at = 1; at <= path.size(); ++at) {
    if (at != path.size() && path[at] != '/') continue;
    std::string part = path.substr(0, at);
    if (::mkdir(part.c_str(), mode) != 0 && errno != EEXIST) {
      if (is_directory(part)) continue;  // EROFS, EACCES on a folder that is there
      return sys_error("cannot make the folder " + part, errno);
    }
  }
  if (!is_directory(path)) return sys_error("cannot make the folder " + path, ENOTDIR);
  return {};
}

Status make_new_dir(const std::string& path, unsigned mode) {
  if (::mkdir(path.c_str(), mode) == 0) return {};
  Error error = sys_error("cannot make the folder " + path, errno);
  if (errno == EEXIST) error.code = Code::conflict;
  return error;
}

bool exists(const std::string& path) {
  struct stat info {};
  return ::lstat(path.c_str(), &info) == 0;
}

bool is_still_at(int fd, const std::string& path) {
  struct stat held {};
  struct stat named {};
  return ::fstat(fd, &held) == 0 && ::lstat(path.c_str(), &named) == 0 && held.st_dev == named.st_dev &&
         held.st_ino == named.st_ino;
}

bool is_directory(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

Result<std::vector<std::string>> list_dir(const std::string& path) {
  DIR* dir = ::opendir(path.c_str());
  if (dir == nullptr) return sys_error("cannot list " + path, errno);
  std::vector<std::string> names;
  while (const dirent* entry = ::readdir(dir)) {
    std::string name = entry->d_name;
    if (name != "." && name != "..") names.push_back(std::move(name));
  }
  ::closedir(dir);
  std::sort(names.begin(), names.end());
  return names;
}

namespace {

Status remove_at(int parent, const std::string& name, const std::string& shown) {
  struct stat info {};
  if (::fstatat(parent, name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) {
    if (errno == ENOENT) return {};
    return sys_error("cannot remove " + shown, errno);
  }
  if (!S_ISDIR(info.st_mode)) {
    if (::unlinkat(parent, name.c_str(), 0) != 0 && errno != ENOENT)
      return sys_error("cannot remove " + shown, errno);
    return {};
  }
  UniqueFd dir(::openat(parent, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!dir.valid()) return sys_error("cannot remove " + shown, errno);
  TRY(std::vector<std::string> names, list_dir("/proc/self/fd/" + std::to_string(dir.get())));
  for (const std::string& child : names) {
    std::string path = shown;
    path.append("/").append(child);
    TRY_VOID(remove_at(dir.get(), child, path));
  }
  if (::unlinkat(parent, name.c_str(), AT_REMOVEDIR) != 0) return sys_error("cannot remove " + shown, errno);
  return {};
}

using FileIds = std::set<std::pair<dev_t, ino_t>>;

// `linked` has the files with more than one name that were counted already.
Result<std::uint64_t> bytes_at(int parent, const std::string& name, const std::string& shown,
                               FileIds* linked) {
  constexpr std::uint64_t kBlock = 512;  // the unit of st_blocks: stat(3type)
  struct stat info {};
  if (::fstatat(parent, name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) {
    if (errno == ENOENT) return std::uint64_t{0};
    return sys_error("cannot measure " + shown, errno);
  }
  std::uint64_t bytes = static_cast<std::uint64_t>(info.st_blocks) * kBlock;
  if (!S_ISDIR(info.st_mode)) {
    const bool counted = info.st_nlink > 1 && !linked->insert({info.st_dev, info.st_ino}).second;
    return counted ? std::uint64_t{0} : bytes;
  }
  UniqueFd dir(::openat(parent, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!dir.valid() && errno == ENOENT) return bytes;
  if (!dir.valid()) return sys_error("cannot measure " + shown, errno);
  TRY(std::vector<std::string> names, list_dir("/proc/self/fd/" + std::to_string(dir.get())));
  for (const std::string& child : names) {
    std::string path = shown;
    path.append("/").append(child);
    TRY(const std::uint64_t more, bytes_at(dir.get(), child, path, linked));
    bytes += more;
  }
  return bytes;
}

}  // namespace

Result<std::uint64_t> tree_bytes(const std::string& path) {
  FileIds linked;
  return bytes_at(AT_FDCWD, path, path, &linked);
}

Status remove_tree(const std::string& path) {
  return remove_at(AT_FDCWD, path, path);
}

Result<std::string> real_path(const std::string& path) {
  char* resolved = ::realpath(path.c_str(), nullptr);
  if (resolved == nullptr) return sys_error(path, errno);
  std::string out = resolved;
  std::free(resolved);  // NOLINT(cppcoreguidelines-no-malloc): realpath(3) allocates
  return out;
}

Result<std::string> executable_dir() {
  TRY(std::string path, real_path("/proc/self/exe"));
  return path.substr(0, path.rfind('/'));
}

Result<TempDir> TempDir::create(const std::string& parent, const std::string& prefix) {
  std::string pattern = parent + "/" + prefix + "XXXXXX";
  if (::mkdtemp(pattern.data()) == nullptr) return sys_error("cannot make a folder in " + parent, errno);
  return TempDir(pattern);
}

TempDir& TempDir::operator=(TempDir&& other) noexcept {
  if (this != &other) {
    if (!path_.empty()) (void)remove_tree(path_).has_value();
    path_ = std::move(other.path_);
    other.path_.clear();
  }
  return *this;
}

TempDir::~TempDir() {
  if (path_.empty()) return;
  if (Status removed = remove_tree(path_); !removed)
    std::fprintf(stderr, "cofferdam: %s\n", removed.error().what.c_str());
}

}  // namespace cofferdam
