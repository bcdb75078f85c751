#include "base/io.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>

namespace cofferdam {

Status write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return sys_error("cannot write", errno);
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
  return {};
}

Result<std::string> read_to_end(int fd, std::size_t max_bytes) {
  std::string out;
  std::array<char, 65536> buffer;
  while (true) {
    ssize_t n = ::read(fd, buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return sys_error("cannot read", errno);
    if (n == 0) return out;
    if (out.size() + static_cast<std::size_t>(n) > max_bytes) {
      return make_error(Code::exhausted, "more than " + std::to_string(max_bytes) + " bytes of input");
    }
    out.append(buffer.data(), static_cast<std::size_t>(n));
  }
}

Result<std::string> read_some(int fd, std::size_t max_bytes, bool* would_block) {
  *would_block = false;
  std::string buffer(max_bytes, '\0');
  while (true) {
    ssize_t n = ::read(fd, buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) {  // the same as EWOULDBLOCK on Linux
      *would_block = true;
      return std::string();
    }
    if (n < 0) return sys_error("cannot read", errno);
    buffer.resize(static_cast<std::size_t>(n));
    return buffer;
  }
}

Result<Message> receive_message(int socket, std::size_t max_bytes) {
  Message message;
  message.bytes.resize(max_bytes);
  iovec io{message.bytes.data(), message.bytes.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int) * 8)> control{};
  msghdr header{};
  header.msg_iov = &io;
  header.msg_iovlen = 1;
  header.msg_control = control.data();
  header.msg_controllen = control.size();
  ssize_t n = -1;
  // A peer that has gone without reading what we sent is said first, once, and before what it had sent
  // itself, which is still there to be read.
  do {
    n = ::recvmsg(socket, &header, MSG_CMSG_CLOEXEC);
  } while (n < 0 && (errno == EINTR || errno == ECONNRESET));
  if (n < 0) return sys_error("cannot receive from the box", errno);
  for (cmsghdr* c = CMSG_FIRSTHDR(&header); c != nullptr; c = CMSG_NXTHDR(&header, c)) {
    if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
    std::size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(int));
      message.fds.emplace_back(fd);
    }
  }
  if ((header.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0) {
    return make_error(Code::protocol, "a message of the box is too large");
  }
  message.bytes.resize(static_cast<std::size_t>(n));
  message.closed = n == 0;
  return message;
}

Status send_message(int socket, std::string_view bytes) {
  while (true) {
    ssize_t n = ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n >= 0) return {};
    if (errno != EINTR) return sys_error("cannot send to the box", errno);
  }
}

Result<bool> wait_readable(int fd, int timeout_ms) {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::milliseconds(timeout_ms);
  while (true) {
    int left = timeout_ms;
    if (timeout_ms >= 0) {
      auto remaining = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now()).count();
      left = remaining > 0 ? static_cast<int>(remaining) : 0;
    }
    pollfd entry{fd, POLLIN, 0};
    int n = ::poll(&entry, 1, left);
    if (n > 0) return true;
    if (n == 0) return false;
    if (errno != EINTR) return sys_error("cannot wait for input", errno);
  }
}

}  // namespace cofferdam
