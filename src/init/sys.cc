#include "init/sys.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "init/plan.h"
#include "init/protocol.h"

namespace cofferdam::init {

void send_with_fd(char kind, std::string_view text, int fd) {
  std::string bytes(1, kind);
  bytes.append(text.substr(0, plan::kMaxMessage - 1));
  iovec io{bytes.data(), bytes.size()};
  msghdr header{};
  header.msg_iov = &io;
  header.msg_iovlen = 1;
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  if (fd >= 0) {
    header.msg_control = control;
    header.msg_controllen = sizeof control;
    cmsghdr* c = CMSG_FIRSTHDR(&header);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(c), &fd, sizeof fd);
  }
  while (::sendmsg(plan::kControlFd, &header, MSG_NOSIGNAL) < 0 && errno == EINTR) {
  }
}

void send_text(char kind, std::string_view text) {
  send_with_fd(kind, text, -1);
}

void die_with(const char* step, int error) {
  send_text(plan::from_init::failed, fields(step, number(static_cast<std::uint64_t>(error))));
  ::_exit(125);
}

void die(const char* step) {
  die_with(step, errno);
}

bool write_file(const char* path, std::string_view text) {
  int fd = ::open(path, O_WRONLY | O_CLOEXEC);
  if (fd < 0) return false;
  ssize_t n = ::write(fd, text.data(), text.size());
  int saved = errno;
  ::close(fd);
  errno = saved;
  return n == static_cast<ssize_t>(text.size());
}

std::string number(std::uint64_t value) {
  return std::to_string(value);
}

std::string fields(std::string_view a, std::string_view b) {
  std::string out(a);
  out.push_back('\0');
  out.append(b);
  return out;
}

std::string fields(std::string_view a, std::string_view b, std::string_view c) {
  return fields(fields(a, b), c);
}

}  // namespace cofferdam::init
