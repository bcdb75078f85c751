#include "support/name_server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cctype>
#include <string_view>

#include "base/text.h"

namespace cofferdam::test {
namespace {

constexpr std::size_t kHeader = 12;  // RFC 1035, section 4.1.1

// The name of the one question, and where it ends; empty for what is none.
std::string read_name(std::string_view packet, std::size_t* end) {
  std::string name;
  std::size_t at = kHeader;
  while (at < packet.size() && packet[at] != '\0') {
    const auto length = static_cast<std::size_t>(static_cast<unsigned char>(packet[at]));
    if (length > 63 || at + 1 + length >= packet.size()) return {};
    if (!name.empty()) name += '.';
    for (char c : packet.substr(at + 1, length)) {
      name += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    }
    at += 1 + length;
  }
  *end = at + 1;
  return name;
}

// To a question of type A the address, if there is one; to every other question about a known name: nothing.
std::string answer(std::string_view packet, std::size_t name_end, const std::string* address) {
  std::string out(packet.substr(0, name_end + 4));
  const bool wants_a = packet.substr(name_end, 2) == std::string_view("\0\1", 2);
  out[2] = static_cast<char>(0x84 | (out[2] & 1));  // an answer, authoritative
  out[3] = address == nullptr ? '\3' : '\0';        // no such name
  for (std::size_t i = 6; i < kHeader; ++i) out[i] = '\0';
  if (address == nullptr || !wants_a) return out;
  out[7] = '\1';
  out += std::string_view("\xC0\x0C\0\1\0\1\0\0\0\0\0\4", 12);
  std::array<char, 4> bytes{};
  if (::inet_pton(AF_INET, address->c_str(), bytes.data()) != 1) return out;
  return out.append(bytes.data(), bytes.size());
}

}  // namespace

NameServer::NameServer(std::map<std::string, std::string> addresses) : addresses_(std::move(addresses)) {
  // Of 127/8, so that several tests can have one at a time.
  const std::string random = random_hex(3);
  address_ = "127." + std::to_string(std::stoi(random.substr(0, 2), nullptr, 16)) + "." +
             std::to_string(std::stoi(random.substr(2, 2), nullptr, 16)) + "." +
             std::to_string(1 + std::stoi(random.substr(4, 2), nullptr, 16) % 254);
  UniqueFd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_port = htons(53);
  if (::inet_pton(AF_INET, address_.c_str(), &at.sin_addr) != 1) return;
  if (::bind(socket.get(), reinterpret_cast<sockaddr*>(&at), sizeof at) != 0) return;
  socket_ = std::move(socket);
  thread_ = std::thread([this] { serve(); });
}

NameServer::~NameServer() {
  if (!thread_.joinable()) return;
  // shutdown(2) of an unconnected datagram socket fails, and wakes the reader all the same (Linux).
  ::shutdown(socket_.get(), SHUT_RDWR);
  thread_.join();
}

std::vector<std::string> NameServer::queries() {
  const std::lock_guard lock(mutex_);
  return queries_;
}

void NameServer::serve() {
  std::array<char, 1024> buffer{};
  while (true) {
    sockaddr_in from{};
    socklen_t size = sizeof from;
    const ssize_t n =
        ::recvfrom(socket_.get(), buffer.data(), buffer.size(), 0, reinterpret_cast<sockaddr*>(&from), &size);
    if (n <= 0) return;
    const std::string_view packet(buffer.data(), static_cast<std::size_t>(n));
    std::size_t end = 0;
    const std::string name = packet.size() > kHeader ? read_name(packet, &end) : std::string();
    if (name.empty() || end + 4 > packet.size()) continue;
    {
      const std::lock_guard lock(mutex_);
      queries_.push_back(name);
    }
    const auto known = addresses_.find(name);
    const std::string out = answer(packet, end, known == addresses_.end() ? nullptr : &known->second);
    ::sendto(socket_.get(), out.data(), out.size(), 0, reinterpret_cast<sockaddr*>(&from), size);
  }
}

}  // namespace cofferdam::test
