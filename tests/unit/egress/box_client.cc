#include "unit/egress/box_client.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cctype>
#include <cstdlib>

#include "base/io.h"

namespace cofferdam::egress::testing {
namespace {

constexpr int kPatienceMs = 20'000;

}  // namespace

BoxClient::BoxClient(std::uint16_t port) : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = ::htonl(INADDR_LOOPBACK);
  address.sin_port = ::htons(port);
  const void* raw = &address;
  if (::connect(fd_.get(), static_cast<const sockaddr*>(raw), sizeof address) != 0) ::abort();
}

void BoxClient::send(std::string_view bytes) {
  while (!bytes.empty()) {
    ssize_t n = ::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n <= 0) return;  // refused in the middle: the answer says why
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
}

bool BoxClient::receive() {
  auto readable = wait_readable(fd_.get(), kPatienceMs);
  if (!readable || !*readable) return false;
  char buffer[16384];
  ssize_t n = ::recv(fd_.get(), buffer, sizeof buffer, 0);
  // An orderly end only: a reset could have swallowed the answer.
  closed_ = n == 0;
  if (n <= 0) return false;
  pending_.append(buffer, static_cast<std::size_t>(n));
  return true;
}

std::string BoxClient::read_until(std::string_view mark) {
  while (pending_.find(mark) == std::string::npos) {
    if (!receive()) return {};
  }
  std::size_t end = pending_.find(mark) + mark.size();
  std::string out = pending_.substr(0, end);
  pending_.erase(0, end);
  return out;
}

std::string BoxClient::read_answer() {
  std::string head = read_until("\r\n\r\n");
  std::string lower = head_of(head);
  if (lower.find("transfer-encoding: chunked") != std::string::npos) return head + read_until("0\r\n\r\n");
  std::size_t at = lower.find("content-length: ");
  std::size_t size = at == std::string::npos ? 0 : std::strtoull(lower.c_str() + at + 16, nullptr, 10);
  while (pending_.size() < size) {
    if (!receive()) return {};
  }
  std::string body = pending_.substr(0, size);
  pending_.erase(0, size);
  return head + body;
}

std::string BoxClient::read_to_end() {
  while (receive()) continue;
  std::string out = pending_;
  pending_.clear();
  return out;
}

int status_of(const std::string& answer) {
  return answer.size() < 12 ? 0 : std::atoi(answer.c_str() + 9);
}

std::string head_of(const std::string& answer) {
  std::string head = answer.substr(0, answer.find("\r\n\r\n"));
  for (char& c : head) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return head;
}

std::string body_of(const std::string& answer) {
  std::size_t end = answer.find("\r\n\r\n");
  return end == std::string::npos ? "" : answer.substr(end + 4);
}

std::string post(std::string_view target, std::string_view body, std::string_view more_fields) {
  return "POST " + std::string(target) +
         " HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n" + std::string(more_fields) +
         "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + std::string(body);
}

}  // namespace cofferdam::egress::testing
