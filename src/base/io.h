// Reading and writing whole buffers over descriptors, EINTR retried, always with a bound.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "base/result.h"

namespace cofferdam {

Status write_all(int fd, std::string_view bytes);  // the caller has SIGPIPE ignored
// Reads to the end of file; more than `max_bytes` is Code::exhausted, never truncation.
Result<std::string> read_to_end(int fd, std::size_t max_bytes);
// One read(2): the bytes, empty at end of file; nullopt-like Code::timeout never occurs: EAGAIN gives an
// empty string with *would_block set.
Result<std::string> read_some(int fd, std::size_t max_bytes, bool* would_block);

// One datagram of a SOCK_SEQPACKET socket together with the descriptors that came with it (SCM_RIGHTS,
// unix(7)). An empty `bytes` with `closed` means that the peer is gone.
struct Message {
  std::string bytes;
  std::vector<UniqueFd> fds;
  bool closed = false;
};
Result<Message> receive_message(int socket, std::size_t max_bytes);
Status send_message(int socket, std::string_view bytes);
// Waits until `fd` is readable or hung up. False when `timeout_ms` passed first (-1: no bound).
Result<bool> wait_readable(int fd, int timeout_ms);

}  // namespace cofferdam
