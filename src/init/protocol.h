// What init and its supervisor say to each other over the control socket (SOCK_SEQPACKET: one message, one
// datagram). The first byte is the kind; fields follow, separated by NUL. Numbers are decimal text.
#pragma once

#include <cstddef>

namespace cofferdam::plan {

inline constexpr std::size_t kMaxMessage = 4096;

namespace from_init {
inline constexpr char failed = 'E';    // step NUL errno: set-up failed, nothing runs
inline constexpr char pid = 'P';       // pid of the box's init as the host sees it
inline constexpr char listener = 'L';  // port, with the listening socket attached
inline constexpr char probe = 'B';     // name NUL "1" or "0" NUL detail
// A box: every probe has been reported; waiting for go. How many microseconds they took. A keeper: the
// storage is there; why the work tree is no overlay, if one was wanted and would not do.
inline constexpr char ready = 'R';
inline constexpr char started = 'S';      // the program has been executed
inline constexpr char not_started = 'X';  // errno: it could not be executed
inline constexpr char deadline = 'D';     // init's own deadline has passed
inline constexpr char over = 'M';    // "memory" or "pids" NUL peak: over the plan's limit, the end follows
inline constexpr char full = 'F';    // "work-bytes", "work-inodes" or "scratch": no room left; once each
inline constexpr char exited = 'Q';  // "c" or "s" NUL value: exit code or signal of the program
// Last: everything but init has been killed and reaped.
// left-overs killed ("1"/"0") NUL largest resident set in KiB NUL cpu ms NUL work bytes NUL work inodes
// NUL most resident bytes of all processes as sampled NUL most processes and threads as sampled
inline constexpr char gone = 'G';
}  // namespace from_init

namespace to_init {
inline constexpr char go = 'g';
inline constexpr char terminate = 't';  // TERM to all, then the grace, then the end
inline constexpr char kill = 'k';
inline constexpr char release = 'r';  // keeper: give the storage back
inline constexpr char keep = 'h';  // keeper: from now on outlive the supervisor, for the plan's linger time
}  // namespace to_init

}  // namespace cofferdam::plan
