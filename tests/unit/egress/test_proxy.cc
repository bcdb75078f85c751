#include "unit/egress/test_proxy.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <utility>

#include "unit/egress/tls_vendor.h"

namespace cofferdam::egress::testing {
namespace {

UniqueFd connect_loopback(std::uint16_t port) {
  UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = ::htonl(INADDR_LOOPBACK);
  address.sin_port = ::htons(port);
  const void* raw = &address;
  if (::connect(fd.get(), static_cast<const sockaddr*>(raw), sizeof address) != 0) fd.reset();
  return fd;
}

bool send_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    ssize_t n = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
  return true;
}

}  // namespace

TestProxy::TestProxy(std::uint16_t port, std::string answer)
    : target_(port),
      answer_(std::move(answer)),
      listener_(listen_on_loopback(&port_)),
      stop_(::eventfd(0, EFD_CLOEXEC)) {
  acceptor_ = std::thread([this] { run(); });
}

TestProxy::~TestProxy() {
  ::eventfd_write(stop_.get(), 1);
  acceptor_.join();
  for (std::thread& thread : threads_) thread.join();
}

std::vector<std::string> TestProxy::heads() {
  std::lock_guard<std::mutex> lock(mutex_);
  return heads_;
}

std::string TestProxy::seen() {
  std::lock_guard<std::mutex> lock(mutex_);
  return seen_;
}

void TestProxy::run() {
  while (true) {
    pollfd entries[2] = {{listener_.get(), POLLIN, 0}, {stop_.get(), POLLIN, 0}};
    ::poll(entries, 2, -1);
    if (entries[1].revents != 0) return;
    UniqueFd client(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    threads_.emplace_back([this, fd = client.release()] { serve(UniqueFd(fd)); });
  }
}

void TestProxy::serve(UniqueFd client) {
  std::string head;
  char byte = 0;
  while (head.find("\r\n\r\n") == std::string::npos && ::recv(client.get(), &byte, 1, 0) == 1) head += byte;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    heads_.push_back(head);
  }
  UniqueFd server = connect_loopback(target_);
  if (!send_all(client.get(), answer_) || !server.valid()) return;
  while (true) {
    pollfd entries[3] = {{client.get(), POLLIN, 0}, {server.get(), POLLIN, 0}, {stop_.get(), POLLIN, 0}};
    ::poll(entries, 3, -1);
    if (entries[2].revents != 0) return;
    for (int i = 0; i < 2; ++i) {
      if (entries[i].revents == 0) continue;
      char buffer[16384];
      ssize_t n = ::recv(entries[i].fd, buffer, sizeof buffer, 0);
      if (n <= 0 || !send_all(entries[1 - i].fd, {buffer, static_cast<std::size_t>(n)})) return;
      std::lock_guard<std::mutex> lock(mutex_);
      seen_.append(buffer, static_cast<std::size_t>(n));
    }
  }
}

}  // namespace cofferdam::egress::testing
