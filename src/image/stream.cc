#include "image/stream.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "base/fd.h"
#include "base/io.h"
#include "base/text.h"

namespace cofferdam::image {
namespace {

constexpr std::size_t kBlock = 1U << 18U;
constexpr std::size_t kMaxPath = 4000;
constexpr std::size_t kMaxName = 255;
constexpr std::size_t kMaxSizeDigits = 15;

Error broken(const std::string& problem) {
  return make_error(Code::protocol, "the unpacked archive is not a tree: " + problem);
}

// Buffered reading with the two forms that a record has.
class Input {
 public:
  explicit Input(int fd) : fd_(fd), buffer_(kBlock) {}

  Result<int> byte() {  // -1: the end
    if (at_ == end_) {
      TRY_VOID(fill());
    }
    if (at_ == end_) return -1;
    return static_cast<unsigned char>(buffer_[at_++]);
  }
  Result<std::string> text(std::size_t max) {
    std::string out;
    while (true) {
      TRY(const int next, byte());
      if (next < 0) return broken("it ends within a record");
      if (next == 0) return out;
      if (out.size() == max) return broken("a text is too long");
      out.push_back(static_cast<char>(next));
    }
  }
  // At most `max` bytes, at least one; empty: the end.
  Result<std::string_view> some(std::uint64_t max) {
    if (at_ == end_) {
      TRY_VOID(fill());
    }
    const std::size_t n = static_cast<std::size_t>(std::min<std::uint64_t>(max, end_ - at_));
    const std::string_view out(buffer_.data() + at_, n);
    at_ += n;
    return out;
  }

 private:
  Status fill() {
    at_ = end_ = 0;
    while (true) {
      const ssize_t n = ::read(fd_, buffer_.data(), buffer_.size());
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return sys_error("cannot read an unpacked archive", errno);
      end_ = static_cast<std::size_t>(n);
      return {};
    }
  }
  int fd_;
  std::vector<char> buffer_;
  std::size_t at_ = 0;
  std::size_t end_ = 0;
};

struct Place {
  UniqueFd folder;
  std::string name;
};

class Unpacker {
 public:
  Unpacker(int fd, UniqueFd root, const TreeBounds& bounds)
      : in_(fd), root_(std::move(root)), bounds_(bounds) {}

  Status run() {
    TRY(const std::string header, in_.text(32));
    if (header != "cofferdam-tree/1") return broken("it does not begin as one");
    while (true) {
      TRY(const int kind, in_.byte());
      if (kind == 'e') break;
      if (++entries_ > bounds_.entries) {
        return make_error(Code::exhausted, fmt::format("the image has more than {} files", bounds_.entries));
      }
      TRY_VOID(record(kind));
    }
    TRY(const int more, in_.byte());
    if (more >= 0) return broken("something follows its end");
    return {};
  }

 private:
  Status record(int kind) {
    switch (kind) {
      case 'd':
        return folder();
      case 'f':
      case 'x':
        return file(kind == 'x' ? 0755 : 0644);
      case 'h':
        return same_file();
      case 'l':
        return link();
      default:
        return broken("an unknown record");
    }
  }

  // Opens the folders on the way one by one. They were all made by a record before.
  Result<Place> read_place() {
    TRY(const std::string path, in_.text(kMaxPath));
    if (path.empty() || path.back() == '/') return broken("not a plain path: " + printable(path, 300));
    const std::vector<std::string> parts = split(path, '/');
    if (parts.size() > bounds_.depth) return broken("too deep: " + printable(path, 300));
    for (const std::string& part : parts) {
      if (part.empty() || part == "." || part == ".." || part.size() > kMaxName)
        return broken("not a plain path: " + printable(path, 300));
    }
    TRY(UniqueFd folder, duplicate(root_.get()));
    for (std::size_t i = 0; i + 1 < parts.size(); ++i) {
      UniqueFd next(::openat(folder.get(), parts[i].c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
      if (!next.valid()) return broken("no folder for " + printable(path, 300));
      folder = std::move(next);
    }
    return Place{std::move(folder), parts.back()};
  }

  Error cannot_make(const Place& place) const {
    if (errno == EEXIST) return broken("twice in it: " + printable(place.name, 300));
    return sys_error("cannot make " + printable(place.name, 300), errno);
  }

  // The mode apart: the umask is the caller's.
  Status folder() {
    TRY(const Place place, read_place());
    if (::mkdirat(place.folder.get(), place.name.c_str(), 0755) != 0 ||
        ::fchmodat(place.folder.get(), place.name.c_str(), 0755, 0) != 0)
      return cannot_make(place);
    return {};
  }

  Status file(mode_t mode) {
    TRY(const std::string digits, in_.text(kMaxSizeDigits));
    if (digits.empty() || digits.find_first_not_of("0123456789") != std::string::npos)
      return broken("not a size");
    std::uint64_t left = std::stoull(digits);
    TRY(const Place place, read_place());
    if (left > bounds_.bytes - bytes_) {
      return make_error(Code::exhausted, fmt::format("the image has more than {} bytes", bounds_.bytes));
    }
    bytes_ += left;
    const UniqueFd out(::openat(place.folder.get(), place.name.c_str(),
                                O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (!out.valid()) return cannot_make(place);
    while (left > 0) {
      TRY(const std::string_view bytes, in_.some(left));
      if (bytes.empty()) return broken("it ends within a file");
      TRY_VOID(write_all(out.get(), bytes));
      left -= bytes.size();
    }
    if (::fchmod(out.get(), mode) != 0) return sys_error("chmod", errno);
    return {};
  }

  // A link of the file system's, so that the content is there once; both names are in the tree, and neither
  // is a symbolic link.
  Status same_file() {
    TRY(const Place place, read_place());
    TRY(const Place source, read_place());
    struct stat info {};
    if (::fstatat(source.folder.get(), source.name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0 ||
        !S_ISREG(info.st_mode))
      return broken("no file to link to: " + printable(source.name, 300));
    if (::linkat(source.folder.get(), source.name.c_str(), place.folder.get(), place.name.c_str(), 0) != 0)
      return cannot_make(place);
    return {};
  }

  Status link() {
    TRY(const Place place, read_place());
    TRY(const std::string text, in_.text(kMaxPath));
    if (text.empty()) return broken("a link to nothing");
    if (::symlinkat(text.c_str(), place.folder.get(), place.name.c_str()) != 0) return cannot_make(place);
    return {};
  }

  Input in_;
  UniqueFd root_;
  TreeBounds bounds_;
  std::uint64_t entries_ = 0;
  std::uint64_t bytes_ = 0;
};

}  // namespace

Status unpack_stream(int fd, const std::string& folder, const TreeBounds& bounds) {
  TRY(UniqueFd root, open_file(folder, O_PATH | O_DIRECTORY | O_NOFOLLOW));
  return Unpacker(fd, std::move(root), bounds).run();
}

}  // namespace cofferdam::image
