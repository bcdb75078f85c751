#include "handoff/beneath.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>

#include "base/io.h"
#include "base/sha256.h"
#include "base/text.h"
#include "handoff/place.h"

namespace cofferdam::handoff {
namespace {

constexpr std::size_t kMaxFileBytes = 2ULL << 30U;

Result<UniqueFd> open_beneath(int root, const std::string& path, int flags) {
  open_how how{};
  how.flags = static_cast<unsigned>(flags) | static_cast<unsigned>(O_CLOEXEC);
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
  int fd = -1;
  do {  // EAGAIN: somebody renames folders at this moment
    fd = static_cast<int>(::syscall(SYS_openat2, root, path.c_str(), &how, sizeof how));
  } while (fd < 0 && (errno == EINTR || errno == EAGAIN));
  if (fd >= 0) return UniqueFd(fd);
  const int why = errno;
  Error error = sys_error(printable(path, 500), why);
  if (why == ENOENT || why == ENOTDIR || why == ELOOP) error.code = Code::not_found;
  return error;
}

std::string folder_in(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash);
}

bool is_git_name(std::string_view component) {
  constexpr std::string_view kGit = ".git";
  return component.size() == kGit.size() &&
         std::equal(component.begin(), component.end(), kGit.begin(),
                    [](char a, char b) { return (a >= 'A' && a <= 'Z' ? a - 'A' + 'a' : a) == b; });
}

Result<std::string> link_fingerprint(int parent, const std::string& name) {
  std::array<char, 4097> target{};
  const ssize_t n = ::readlinkat(parent, name.c_str(), target.data(), target.size());
  if (n < 0) return sys_error(printable(name, 300), errno);
  return fingerprint(PlaceKind::link, {target.data(), static_cast<std::size_t>(n)});
}

Result<std::string> file_fingerprint(int parent, const std::string& name) {
  UniqueFd fd(::openat(parent, name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (!fd.valid()) return sys_error(printable(name, 300), errno);
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0) return sys_error(printable(name, 300), errno);
  if (!S_ISREG(info.st_mode)) return std::string("?");
  TRY(const std::string bytes, read_to_end(fd.get(), kMaxFileBytes));
  return fingerprint((info.st_mode & S_IXUSR) != 0 ? PlaceKind::executable : PlaceKind::file, bytes);
}

}  // namespace

std::string fingerprint(PlaceKind kind, std::string_view bytes) {
  if (kind == PlaceKind::absent) return "-";
  return static_cast<char>(kind) + sha256_hex(bytes);
}

bool is_plain_path(const std::string& path) {
  if (path.empty() || path.size() > 4096 || path.find('\0') != std::string::npos) return false;
  const std::vector<std::string> components = split(path, '/');
  // split() drops what stands behind the last separator, if that is nothing.
  if (path.back() == '/') return false;
  return std::none_of(components.begin(), components.end(), [](const std::string& component) {
    return component.empty() || component == "." || component == ".." || is_git_name(component);
  });
}

Result<UniqueFd> open_parent(int root, const std::string& path) {
  return open_beneath(root, folder_in(path), O_PATH | O_DIRECTORY);
}

Result<UniqueFd> make_parent(int root, const std::string& path) {
  for (std::size_t at = path.find('/'); at != std::string::npos; at = path.find('/', at + 1)) {
    const std::string folder = path.substr(0, at);
    TRY(const UniqueFd above, open_parent(root, folder));
    if (::mkdirat(above.get(), name_in(folder).c_str(), 0777) != 0 && errno != EEXIST) {
      return sys_error("cannot make the folder " + printable(folder, 500), errno);
    }
  }
  return open_parent(root, path);
}

std::string name_in(const std::string& path) {
  return path.substr(path.rfind('/') + 1);
}

Result<std::string> fingerprint_at(int root, const std::string& path) {
  auto parent = open_parent(root, path);
  if (!parent && parent.error().code == Code::not_found) return std::string("-");
  if (!parent) return std::move(parent).error();
  const std::string name = name_in(path);
  struct stat info {};
  if (::fstatat(parent->get(), name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) {
    if (errno == ENOENT) return std::string("-");
    return sys_error(printable(path, 500), errno);
  }
  if (S_ISLNK(info.st_mode)) return link_fingerprint(parent->get(), name);
  if (S_ISREG(info.st_mode)) return file_fingerprint(parent->get(), name);
  return std::string(S_ISDIR(info.st_mode) ? "d" : "?");
}

Status move_beneath(int from_root, const std::string& from, int to_root, const std::string& to) {
  TRY(const UniqueFd source, open_parent(from_root, from));
  TRY(const UniqueFd target, open_parent(to_root, to));
  if (::renameat2(source.get(), name_in(from).c_str(), target.get(), name_in(to).c_str(), RENAME_NOREPLACE) ==
      0) {
    return {};
  }
  const int why = errno;
  Error error = sys_error("cannot move " + printable(from, 500) + " to " + printable(to, 500), why);
  if (why == EEXIST) error.code = Code::conflict;
  if (why == EXDEV) error.hint = "the work tree and its git directory are on two file systems: use git merge";
  return error;
}

void remove_empty_parents(int root, const std::string& path) {
  for (std::string folder = folder_in(path); folder != "."; folder = folder_in(folder)) {
    auto above = open_parent(root, folder);
    if (!above || ::unlinkat(above->get(), name_in(folder).c_str(), AT_REMOVEDIR) != 0) return;
  }
}

}  // namespace cofferdam::handoff
