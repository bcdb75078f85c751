#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "probe/acts.h"

namespace cofferdam::probe {
namespace {

Outcome create(const Args& args) {
  const std::string path = argument(args, 0);
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0) return denied_by(errno);
  ::close(fd);
  return outcome(::unlink(path.c_str()));
}

// Opened and closed again: nothing is written.
Outcome open_to_write(const Args& args) {
  const std::string path = argument(args, 0);
  const int fd = ::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0 && errno == ENOENT && path.rfind("/proc/", 0) == 0)
    return {Outcome::Kind::unavailable, "this kernel has no such file"};
  return outcome(fd);
}

// What is there already, written once more: the only write to a setting of the kernel.
Outcome write_same(const Args& args) {
  const std::string path = argument(args, 0);
  const std::string value = slurp(path, 4096);
  if (value.empty()) return failed("it cannot be read");
  const int fd = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (fd < 0) return denied_by(errno);
  return outcome(::write(fd, value.data(), value.size()));
}

Outcome open_to_read(const Args& args) {
  return outcome(::open(argument(args, 0).c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
}

// At least one byte: a masked file can be opened, and is empty.
Outcome read_content(const Args& args) {
  const int fd = ::open(argument(args, 0).c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return denied_by(errno);
  char byte = 0;
  const ssize_t n = ::read(fd, &byte, 1);
  if (n < 0) return denied_by(errno);
  return allowed_if(n == 1, "it is empty");
}

Outcome read_link(const Args& args) {
  char text[256];
  return outcome(::readlink(argument(args, 0).c_str(), text, sizeof text));
}

Outcome list(const Args& args) {
  DIR* folder = ::opendir(argument(args, 0).c_str());
  if (folder == nullptr) return denied_by(errno);
  int names = 0;
  while (const dirent* entry = ::readdir(folder)) names += entry->d_name[0] != '.' ? 1 : 0;
  ::closedir(folder);
  return allowed_if(names > 0, "it is empty");
}

Outcome hard_link(const Args& args) {
  const std::string to = argument(args, 1);
  if (::link(argument(args, 0).c_str(), to.c_str()) != 0) return denied_by(errno);
  return outcome(::unlink(to.c_str()));
}

// A character device 0:0, which the kernel lets everybody make and an overlay takes for a removed file.
Outcome whiteout(const Args& args) {
  const std::string path = argument(args, 0);
  if (::mknod(path.c_str(), S_IFCHR, ::makedev(0, 0)) != 0) return denied_by(errno);
  return outcome(::unlink(path.c_str()));
}

// FOLDER BYTES: so much in one file, which is removed again.
Outcome fill_bytes(const Args& args) {
  const std::string path = argument(args, 0) + "/cofferdam-fill";
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0) return failed("create");
  const std::string block(65536, 'x');
  Outcome found = outcome(0);
  for (long left = number(args, 1); left > 0; left -= static_cast<long>(block.size())) {
    const ssize_t n = ::write(fd, block.data(), block.size());
    if (n != static_cast<ssize_t>(block.size())) {
      found = denied_by(n < 0 ? errno : ENOSPC);
      break;
    }
  }
  ::close(fd);
  ::unlink(path.c_str());
  return found;
}

// FOLDER COUNT: so many files, which are removed again.
Outcome fill_inodes(const Args& args) {
  const std::string stem = argument(args, 0) + "/cofferdam-fill-";
  Outcome found = outcome(0);
  long made = 0;
  for (; made < number(args, 1); ++made) {
    const int fd = ::open((stem + std::to_string(made)).c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0) {
      found = denied_by(errno);
      break;
    }
    ::close(fd);
  }
  while (made-- > 0) ::unlink((stem + std::to_string(made)).c_str());
  return found;
}

// Our own program, over which a launcher must not be written.
Outcome write_own_program(const Args&) {
  return outcome(::open("/proc/self/exe", O_WRONLY | O_CLOEXEC));
}

bool copy_self(int to) {
  const int from = ::open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
  char buffer[65536];
  ssize_t n = 0;
  while ((n = ::read(from, buffer, sizeof buffer)) > 0) {
    if (::write(to, buffer, static_cast<std::size_t>(n)) != n) return false;
  }
  ::close(from);
  return n == 0;
}

// PATH: a copy of this program there, executed as far as the kernel checks it (execve(2) fails later for
// an argument list that is too long, and with another errno than a mount that forbids it).
Outcome execute_copy(const Args& args) {
  const std::string path = argument(args, 0);
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0700);
  if (fd < 0 || !copy_self(fd)) return failed("copy");
  ::close(fd);
  Outcome found = outcome(::access(path.c_str(), X_OK));  // EACCES on a noexec mount: access(2)
  ::unlink(path.c_str());
  return found;
}

}  // namespace

std::vector<Act> file_acts() {
  return {{"create", create},
          {"open-write", open_to_write},
          {"write-same", write_same},
          {"open-read", open_to_read},
          {"read-content", read_content},
          {"readlink", read_link},
          {"list", list},
          {"link", hard_link},
          {"whiteout", whiteout},
          {"fill-bytes", fill_bytes},
          {"fill-inodes", fill_inodes},
          {"write-own-program", write_own_program},
          {"execute-copy", execute_copy}};
}

}  // namespace cofferdam::probe
