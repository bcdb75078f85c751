// Owners of file descriptors. Every descriptor that Cofferdam opens is close-on-exec; a child gets only
// what its SpawnOptions map (process.h).
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"

namespace cofferdam {

// Owns one descriptor; closes it. Move-only. Not thread safe.
class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int fd) : fd_(fd) {}
  UniqueFd(UniqueFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept;
  UniqueFd(const UniqueFd&) = delete;
  UniqueFd& operator=(const UniqueFd&) = delete;
  ~UniqueFd() { reset(); }

  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }
  int release() { return std::exchange(fd_, -1); }
  void reset();

 private:
  int fd_ = -1;
};

struct Pipe {
  UniqueFd read;
  UniqueFd write;
};
struct SocketPair {
  UniqueFd ours;
  UniqueFd theirs;
};

Result<Pipe> make_pipe();                  // pipe2(2), O_CLOEXEC
Result<SocketPair> make_seqpacket_pair();  // AF_UNIX SOCK_SEQPACKET: message boundaries kept
Result<UniqueFd> open_file(const std::string& path, int flags, unsigned mode = 0600);  // adds O_CLOEXEC
// A sealed memfd (no write, grow, shrink) holding `bytes`, positioned at 0: memfd_create(2), F_ADD_SEALS.
Result<UniqueFd> make_sealed_memfd(const char* name, std::string_view bytes);
Result<UniqueFd> duplicate(int fd);  // F_DUPFD_CLOEXEC
Status set_nonblocking(int fd, bool on);
// A lock on a whole file that goes with its last open descriptor, however the process ends: open file
// description locks, fcntl_locking(2). They and flock(2) do not see each other. Needs a descriptor open for
// writing.
Result<bool> try_lock(int fd);   // false: somebody else holds it
Result<bool> is_locked(int fd);  // by somebody else; takes nothing

}  // namespace cofferdam
