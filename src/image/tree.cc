#include "image/tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <functional>
#include <memory>

#include "base/fd.h"
#include "base/sha256.h"
#include "base/text.h"

namespace cofferdam::image {
namespace {

constexpr const char* kHeader = "cofferdam-image/1\n";
constexpr std::size_t kBlock = 1U << 18U;
constexpr std::int64_t kSecond = 1'000'000'000;

std::int64_t ns_of(const struct timespec& time) {
  return static_cast<std::int64_t>(time.tv_sec) * kSecond + time.tv_nsec;
}

std::string escaped(std::string_view text) {
  static constexpr char kDigits[] = "0123456789ABCDEF";
  std::string out;
  out.reserve(text.size());
  for (const char byte : text) {
    const auto value = static_cast<unsigned char>(byte);
    if (value > 0x20 && value < 0x7f && byte != '%') {
      out.push_back(byte);
      continue;
    }
    out.push_back('%');
    out.push_back(kDigits[value >> 4U]);
    out.push_back(kDigits[value & 15U]);
  }
  return out;
}

// One entry on the way: `folder` is an open descriptor of its folder.
struct Visit {
  int folder = -1;
  const std::string& name;
  const std::string& path;
  const struct stat& info;
};
using Visitor = std::function<Status(const Visit&)>;

class Walker {
 public:
  explicit Walker(const Visitor& visitor) : visitor_(visitor) {}

  // Takes the descriptor. `path` ends with a slash, or is empty.
  Status walk(UniqueFd folder, const std::string& path, std::size_t depth) {
    if (depth > kMaxDepth) return make_error(Code::protocol, "too deep: " + printable(path, 300));
    TRY(const std::vector<std::string> names, names_in(folder.get(), path));
    for (const std::string& name : names) {
      struct stat info {};
      std::string below = path;
      below += name;
      if (::fstatat(folder.get(), name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0)
        return sys_error("cannot look at " + printable(below, 300), errno);
      if (++entries_ > kMaxEntries) return make_error(Code::exhausted, "too many files in an image");
      TRY_VOID(visitor_({folder.get(), name, below, info}));
      if (!S_ISDIR(info.st_mode)) continue;
      UniqueFd next(::openat(folder.get(), name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
      if (!next.valid()) return sys_error("cannot open " + printable(below, 300), errno);
      below += '/';
      TRY_VOID(walk(std::move(next), below, depth + 1));
    }
    return {};
  }

 private:
  static Result<std::vector<std::string>> names_in(int folder, const std::string& path) {
    const int copy = ::fcntl(folder, F_DUPFD_CLOEXEC, 0);
    const std::unique_ptr<DIR, int (*)(DIR*)> dir(copy < 0 ? nullptr : ::fdopendir(copy), ::closedir);
    if (dir == nullptr) {
      const int problem = errno;
      UniqueFd closes(copy);
      return sys_error("cannot list /" + printable(path, 300), problem);
    }
    std::vector<std::string> names;
    errno = 0;
    while (const dirent* entry =
               ::readdir(dir.get())) {  // NOLINT(concurrency-mt-unsafe): a stream of our own
      std::string name = entry->d_name;
      if (name != "." && name != "..") names.push_back(std::move(name));
    }
    if (errno != 0) return sys_error("cannot list /" + printable(path, 300), errno);
    std::sort(names.begin(), names.end());
    return names;
  }

  const Visitor& visitor_;
  std::size_t entries_ = 0;
};

Status walk_tree(const std::string& tree, const Visitor& visitor) {
  TRY(UniqueFd root, open_file(tree, O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
  return Walker(visitor).walk(std::move(root), "", 0);
}

Result<std::string> digest_of(const Visit& visit, char* block) {
  const UniqueFd file(::openat(visit.folder, visit.name.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
  if (!file.valid()) return sys_error("cannot open " + printable(visit.path, 300), errno);
  Sha256 digest;
  while (true) {
    const ssize_t n = ::read(file.get(), block, kBlock);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return sys_error("cannot read " + printable(visit.path, 300), errno);
    if (n == 0) return digest.hex();
    digest.update({block, static_cast<std::size_t>(n)});
  }
}

Result<std::string> link_text(const Visit& visit) {
  std::array<char, 4097> text{};
  const ssize_t n = ::readlinkat(visit.folder, visit.name.c_str(), text.data(), text.size());
  if (n < 0) return sys_error("cannot read the link " + printable(visit.path, 300), errno);
  return std::string(text.data(), static_cast<std::size_t>(n));
}

Result<std::string> line_of(const Visit& visit, char* block) {
  const unsigned mode = visit.info.st_mode & 07777U;
  if (S_ISDIR(visit.info.st_mode)) return fmt::format("d {:o} - - {}\n", mode, escaped(visit.path));
  if (S_ISLNK(visit.info.st_mode)) {
    TRY(const std::string text, link_text(visit));
    return fmt::format("l - - - {} {}\n", escaped(visit.path), escaped(text));
  }
  if (!S_ISREG(visit.info.st_mode)) {
    return make_error(Code::protocol, "neither file, folder nor link: " + printable(visit.path, 300));
  }
  TRY(const std::string digest, digest_of(visit, block));
  return fmt::format("f {:o} {} {} {}\n", mode, visit.info.st_size, digest, escaped(visit.path));
}

void add_number(std::uint64_t number, std::string* out) {
  for (unsigned byte = 0; byte < 8; ++byte) out->push_back(static_cast<char>((number >> (8 * byte)) & 0xFFU));
}

std::string stat_record(const std::string& path, const struct stat& info) {
  std::string record = path;
  record.push_back('\0');
  const std::uint64_t numbers[] = {info.st_dev,
                                   info.st_ino,
                                   info.st_mode,
                                   (static_cast<std::uint64_t>(info.st_uid) << 32U) | info.st_gid,
                                   static_cast<std::uint64_t>(info.st_size),
                                   static_cast<std::uint64_t>(ns_of(info.st_mtim)),
                                   static_cast<std::uint64_t>(ns_of(info.st_ctim))};
  for (const std::uint64_t number : numbers) add_number(number, &record);
  return record;
}

// A line's path, as it is shown.
std::string path_in(std::string_view line) {
  std::vector<std::string> parts = split(line, ' ');
  return parts.size() < 5 ? std::string(line) : parts[4];
}

}  // namespace

Result<std::string> manifest_of(const std::string& tree) {
  const auto block = std::make_unique<char[]>(kBlock);
  std::vector<std::pair<std::string, std::string>> lines;
  TRY_VOID(walk_tree(tree, [&](const Visit& visit) -> Status {
    TRY(std::string line, line_of(visit, block.get()));
    lines.emplace_back(visit.path, std::move(line));
    return {};
  }));
  std::sort(lines.begin(), lines.end());
  std::string manifest = kHeader;
  for (const auto& [path, line] : lines) manifest += line;
  return manifest;
}

std::vector<std::string> differences(std::string_view left, std::string_view right, std::size_t max) {
  std::vector<std::string> ours = split(left, '\n');
  std::vector<std::string> theirs = split(right, '\n');
  std::sort(ours.begin(), ours.end());
  std::sort(theirs.begin(), theirs.end());
  std::vector<std::string> only;
  std::set_symmetric_difference(ours.begin(), ours.end(), theirs.begin(), theirs.end(),
                                std::back_inserter(only));
  std::vector<std::string> paths;
  for (const std::string& line : only) {
    std::string path = path_in(line);
    if (std::find(paths.begin(), paths.end(), path) != paths.end()) continue;
    if (paths.size() == max) break;
    paths.push_back(std::move(path));
  }
  return paths;
}

Result<StatFacts> stat_of(const std::string& tree) {
  StatFacts facts;
  Sha256 digest;
  struct stat top {};
  if (::lstat(tree.c_str(), &top) != 0) return sys_error("cannot look at " + tree, errno);
  digest.update(stat_record("", top));
  TRY_VOID(walk_tree(tree, [&](const Visit& visit) -> Status {
    ++facts.entries;
    digest.update(stat_record(visit.path, visit.info));
    if (!S_ISREG(visit.info.st_mode)) return {};
    facts.bytes += static_cast<std::uint64_t>(visit.info.st_size);
    if (facts.landmarks.size() < kLandmarks && starts_with(visit.path, "usr/"))
      facts.landmarks.push_back(visit.path);
    return {};
  }));
  facts.sha256 = digest.hex();
  return facts;
}

}  // namespace cofferdam::image
