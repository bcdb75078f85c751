#include "gate/canary.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>

#include "base/text.h"

namespace cofferdam::gate {
namespace {

constexpr std::size_t kMaxProbe = 64U << 20U;
// How long an act stays over a bound that init looks at a few times a second.
constexpr const char* kHoldMs = "8000";

std::string link_text(const std::string& path) {
  std::array<char, 256> text{};
  const ssize_t n = ::readlink(path.c_str(), text.data(), text.size());
  return {text.data(), n > 0 ? static_cast<std::size_t>(n) : 0};
}

Result<UniqueFd> bound_socket(int family, int type, const void* address, socklen_t size) {
  UniqueFd fd(::socket(family, type | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return sys_error("socket", errno);
  if (::bind(fd.get(), static_cast<const sockaddr*>(address), size) != 0) return sys_error("bind", errno);
  if (type == SOCK_STREAM && ::listen(fd.get(), 64) != 0) return sys_error("listen", errno);
  return fd;
}

Result<UniqueFd> at_path(const std::string& path, int type) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path)
    return make_error(Code::io, "the temporary folder's path is too long");
  std::memcpy(address.sun_path, path.data(), path.size());
  TRY(UniqueFd fd, bound_socket(AF_UNIX, type, &address, sizeof address));
  if (::chmod(path.c_str(), 0666) != 0) return sys_error("chmod " + path, errno);
  return fd;
}

Result<UniqueFd> at_abstract_name(const std::string& name) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  return bound_socket(AF_UNIX, SOCK_STREAM, &address, size);
}

Result<UniqueFd> on_loopback(int* port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  TRY(UniqueFd fd, bound_socket(AF_INET, SOCK_STREAM, &address, sizeof address));
  socklen_t size = sizeof address;
  if (::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0)  // NOLINT
    return sys_error("getsockname", errno);
  *port = ntohs(address.sin_port);
  return fd;
}

}  // namespace

Result<Canary> Canary::make(const std::string& probe) {
  TRY(TempDir folder, TempDir::create("/tmp", "cofferdam-gate-"));
  Canary canary(std::move(folder));
  TRY_VOID(canary.make_files(probe));
  TRY_VOID(canary.make_sockets());
  TRY_VOID(canary.make_terminal());
  canary.learn_names();
  return canary;
}

// Open to everybody: what keeps a box away is not a mode.
Status Canary::make_files(const std::string& probe) {
  const std::string& folder = folder_.path();
  if (::chmod(folder.c_str(), 0755) != 0) return sys_error("chmod " + folder, errno);
  TRY_VOID(make_new_dir(agent_dir(), 0755));
  TRY(const std::string program, read_file(probe, kMaxProbe));
  TRY_VOID(write_file_atomic(agent_dir() + "/cofferdam-probe", program, 0755));
  TRY_VOID(write_file_atomic(folder + "/canary", "of the host\n", 0644));
  for (const std::string& path : {agent_dir(), agent_dir() + "/cofferdam-probe"}) {
    if (::chmod(path.c_str(), 0755) != 0) return sys_error("chmod " + path, errno);  // whatever the umask
  }
  if (::chmod((folder + "/canary").c_str(), 0644) != 0) return sys_error("chmod", errno);
  TRY(folder_fd_, open_file(folder, O_RDONLY | O_DIRECTORY));
  return {};
}

Status Canary::make_sockets() {
  TRY(stream_, at_path(folder_.path() + "/stream", SOCK_STREAM));
  TRY(datagram_, at_path(folder_.path() + "/datagram", SOCK_DGRAM));
  names_["abstract"] = "cofferdam-gate-" + random_hex(8);
  TRY(abstract_, at_abstract_name(names_["abstract"]));
  int port = 0;
  TRY(loopback_, on_loopback(&port));
  names_["port"] = std::to_string(port);
  return {};
}

Status Canary::make_terminal() {
  master_ = UniqueFd(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC));
  std::array<char, 64> name{};
  if (!master_.valid() || ::unlockpt(master_.get()) != 0 ||
      ::ptsname_r(master_.get(), name.data(), name.size()) != 0) {
    return sys_error("make a terminal", errno);
  }
  TRY(terminal_, open_file(name.data(), O_RDWR | O_NOCTTY));
  return {};
}

void Canary::learn_names() {
  const std::string& path = folder_.path();
  names_["folder"] = path;
  names_["leaf"] = path.substr(path.rfind('/') + 1);
  names_["pid"] = std::to_string(::getpid());
  if (auto name = read_file("/proc/self/comm", 64)) names_["name"] = std::string(trim(*name));
  for (const char* kind : {"net", "ipc", "uts", "cgroup"}) {
    names_[kind] = link_text(std::string("/proc/self/ns/") + kind);
  }
}

std::string Canary::fill_in(std::string act, bool watched) const {
  std::map<std::string, std::string> names = names_;
  names["hold"] = watched ? kHoldMs : "0";
  for (const auto& [name, value] : names) {
    const std::string marker = "$" + name;
    for (std::size_t at = 0; (at = act.find(marker, at)) != std::string::npos; at += value.size()) {
      act.replace(at, marker.size(), value);
    }
  }
  return act;
}

}  // namespace cofferdam::gate
