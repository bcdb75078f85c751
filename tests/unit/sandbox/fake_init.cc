// Speaks as an init would, from a script: the argv of its plan. "map" enters a user namespace as a box's
// init does, and says its pid; "wait" waits for one order; "fd" attaches a descriptor to the next message;
// everything else is a message in hexadecimal. Ends after the last one.
#include <fcntl.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <string>

#include "init/plan.h"
#include "init/protocol.h"

namespace {

namespace plan = cofferdam::plan;

std::string read_all(int fd) {
  std::string out;
  char buffer[4096];
  for (ssize_t n = 0; (n = ::read(fd, buffer, sizeof buffer)) > 0;)
    out.append(buffer, static_cast<std::size_t>(n));
  return out;
}

std::string from_hex(const std::string& text) {
  std::string out;
  for (std::size_t at = 0; at + 1 < text.size(); at += 2) {
    out.push_back(static_cast<char>(std::stoi(text.substr(at, 2), nullptr, 16)));
  }
  return out;
}

void send(std::string bytes, bool with_fd) {
  iovec io{bytes.data(), bytes.size()};
  msghdr header{};
  header.msg_iov = &io;
  header.msg_iovlen = 1;
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  if (with_fd) {
    header.msg_control = control;
    header.msg_controllen = sizeof control;
    cmsghdr* c = CMSG_FIRSTHDR(&header);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(c), &plan::kControlFd, sizeof(int));
  }
  if (::sendmsg(plan::kControlFd, &header, MSG_NOSIGNAL) < 0) ::_exit(1);
}

void write_text(const char* path, const std::string& text) {
  const int fd = ::open(path, O_WRONLY | O_CLOEXEC);
  if (fd < 0 || ::write(fd, text.data(), text.size()) < 0) ::_exit(4);
  ::close(fd);
}

// As set_limits() of init/restrict.cc: the outside probe reads it.
void limit_processes(std::uint64_t most) {
  const rlimit limit{most, most};
  if (::setrlimit(RLIMIT_NPROC, &limit) != 0) ::_exit(4);
}

void enter_user_namespace() {
  const std::string uid = std::to_string(::geteuid());
  const std::string gid = std::to_string(::getegid());
  if (::unshare(CLONE_NEWUSER) != 0) ::_exit(4);
  write_text("/proc/self/setgroups", "deny");
  write_text("/proc/self/uid_map", "1000 " + uid + " 1");
  write_text("/proc/self/gid_map", "1000 " + gid + " 1");
  send(plan::from_init::pid + std::to_string(::getpid()), false);
}

}  // namespace

int main() {
  plan::Plan plan;
  if (!plan::decode_plan(read_all(plan::kPlanFd), &plan)) return 2;
  bool with_fd = false;
  for (const std::string& line : plan.argv) {
    char order = 0;
    if (line == "wait") {
      if (::recv(plan::kControlFd, &order, 1, 0) != 1) return 3;
    } else if (line == "map") {
      enter_user_namespace();
      limit_processes(plan.process_limit);
    } else if (line == "fd") {
      with_fd = true;
    } else {
      send(from_hex(line), with_fd);
      with_fd = false;
    }
  }
  return 0;
}
