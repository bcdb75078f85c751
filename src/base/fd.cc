#include "base/fd.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

#include "base/io.h"

namespace cofferdam {

UniqueFd& UniqueFd::operator=(UniqueFd&& other) noexcept {
  if (this != &other) {
    reset();
    fd_ = std::exchange(other.fd_, -1);
  }
  return *this;
}

void UniqueFd::reset() {
  if (fd_ >= 0) ::close(std::exchange(fd_, -1));
}

Result<Pipe> make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return sys_error("cannot make a pipe", errno);
  return Pipe{UniqueFd(ends[0]), UniqueFd(ends[1])};
}

Result<SocketPair> make_seqpacket_pair() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    return sys_error("cannot make a socket pair", errno);
  }
  return SocketPair{UniqueFd(ends[0]), UniqueFd(ends[1])};
}

Result<UniqueFd> open_file(const std::string& path, int flags, unsigned mode) {
  while (true) {
    int fd = ::open(path.c_str(), flags | O_CLOEXEC, mode);
    if (fd >= 0) return UniqueFd(fd);
    if (errno != EINTR) return sys_error("cannot open " + path, errno);
  }
}

Result<UniqueFd> make_sealed_memfd(const char* name, std::string_view bytes) {
  UniqueFd fd(::memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd.valid()) return sys_error("cannot make a memory file", errno);
  TRY_VOID(write_all(fd.get(), bytes));
  if (::lseek(fd.get(), 0, SEEK_SET) != 0) return sys_error("cannot rewind a memory file", errno);
  if (::fcntl(fd.get(), F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL) != 0) {
    return sys_error("cannot seal a memory file", errno);
  }
  return fd;
}

Result<UniqueFd> duplicate(int fd) {
  UniqueFd copy(::fcntl(fd, F_DUPFD_CLOEXEC, 3));
  if (!copy.valid()) return sys_error("cannot duplicate a descriptor", errno);
  return copy;
}

namespace {

struct flock whole_file() {
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  return lock;
}

}  // namespace

Result<bool> try_lock(int fd) {
  struct flock lock = whole_file();
  while (::fcntl(fd, F_OFD_SETLK, &lock) != 0) {
    if (errno == EAGAIN || errno == EACCES) return false;
    if (errno != EINTR) return sys_error("cannot lock a file", errno);
  }
  return true;
}

Result<bool> is_locked(int fd) {
  struct flock lock = whole_file();
  if (::fcntl(fd, F_OFD_GETLK, &lock) != 0) return sys_error("cannot look at a lock", errno);
  return lock.l_type != F_UNLCK;
}

Status set_nonblocking(int fd, bool on) {
  int flags = ::fcntl(fd, F_GETFL);
  if (flags < 0) return sys_error("cannot read descriptor flags", errno);
  int wanted = on ? flags | O_NONBLOCK : flags & ~O_NONBLOCK;
  if (::fcntl(fd, F_SETFL, wanted) != 0) return sys_error("cannot set descriptor flags", errno);
  return {};
}

}  // namespace cofferdam
