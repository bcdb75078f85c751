#include "base/io.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <cstring>

namespace cofferdam {
namespace {

TEST(Io, ReadsToTheEndWithinTheBound) {
  auto pipe = make_pipe();
  ASSERT_TRUE(pipe);
  ASSERT_TRUE(write_all(pipe->write.get(), "12345"));
  pipe->write.reset();
  auto bytes = read_to_end(pipe->read.get(), 5);
  ASSERT_TRUE(bytes);
  EXPECT_EQ(*bytes, "12345");

  auto other = make_pipe();
  ASSERT_TRUE(other);
  ASSERT_TRUE(write_all(other->write.get(), "12345"));
  other->write.reset();
  auto bounded = read_to_end(other->read.get(), 4);
  ASSERT_FALSE(bounded);
  EXPECT_EQ(bounded.error().code, Code::exhausted);
}

TEST(Io, ReadSomeTellsEmptyFromEnded) {
  auto pipe = make_pipe();
  ASSERT_TRUE(pipe);
  ASSERT_TRUE(set_nonblocking(pipe->read.get(), true));
  bool would_block = false;
  auto nothing = read_some(pipe->read.get(), 10, &would_block);
  ASSERT_TRUE(nothing);
  EXPECT_TRUE(would_block);
  ASSERT_TRUE(write_all(pipe->write.get(), "abc"));
  auto part = read_some(pipe->read.get(), 2, &would_block);
  ASSERT_TRUE(part);
  EXPECT_EQ(*part, "ab");
  EXPECT_FALSE(would_block);
  ASSERT_TRUE(read_some(pipe->read.get(), 2, &would_block));
  pipe->write.reset();
  auto ended = read_some(pipe->read.get(), 2, &would_block);
  ASSERT_TRUE(ended);
  EXPECT_TRUE(ended->empty());
  EXPECT_FALSE(would_block);
}

TEST(Io, WaitsNoLongerThanToldAndSeesHangUp) {
  auto pipe = make_pipe();
  ASSERT_TRUE(pipe);
  auto idle = wait_readable(pipe->read.get(), 5);
  ASSERT_TRUE(idle);
  EXPECT_FALSE(*idle);
  pipe->write.reset();
  auto ended = wait_readable(pipe->read.get(), -1);
  ASSERT_TRUE(ended);
  EXPECT_TRUE(*ended);
}

// Sends `bytes` and a copy of `fd`, as a box does with its listeners.
void send_with_fd(int socket, std::string bytes, int fd) {
  iovec io{bytes.data(), bytes.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr header{};
  header.msg_iov = &io;
  header.msg_iovlen = 1;
  header.msg_control = control.data();
  header.msg_controllen = control.size();
  cmsghdr* rights = CMSG_FIRSTHDR(&header);
  rights->cmsg_level = SOL_SOCKET;
  rights->cmsg_type = SCM_RIGHTS;
  rights->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(rights), &fd, sizeof fd);
  ASSERT_EQ(::sendmsg(socket, &header, MSG_NOSIGNAL), static_cast<ssize_t>(bytes.size()));
}

TEST(Messages, KeepTheirBoundariesAndDescriptors) {
  auto pair = make_seqpacket_pair();
  auto pipe = make_pipe();
  ASSERT_TRUE(pair && pipe);
  ASSERT_TRUE(send_message(pair->ours.get(), "one"));
  send_with_fd(pair->ours.get(), "two", pipe->write.get());
  auto first = receive_message(pair->theirs.get(), 64);
  auto second = receive_message(pair->theirs.get(), 64);
  ASSERT_TRUE(first && second);
  EXPECT_EQ(first->bytes, "one");
  EXPECT_TRUE(first->fds.empty());
  EXPECT_EQ(second->bytes, "two");
  ASSERT_EQ(second->fds.size(), 1U);
  ASSERT_TRUE(write_all(second->fds.at(0).get(), "through"));
  bool would_block = false;
  auto through = read_some(pipe->read.get(), 64, &would_block);
  ASSERT_TRUE(through);
  EXPECT_EQ(*through, "through");
}

// Its last words count although it did not read ours.
TEST(Messages, APeerThatGoesWithoutReadingIsStillHeard) {
  auto pair = make_seqpacket_pair();
  ASSERT_TRUE(pair);
  ASSERT_TRUE(send_message(pair->theirs.get(), "one"));
  ASSERT_TRUE(send_message(pair->theirs.get(), "two"));
  ASSERT_TRUE(send_message(pair->ours.get(), "never read"));
  pair->theirs.reset();
  for (const char* expected : {"one", "two"}) {
    auto message = receive_message(pair->ours.get(), 64);
    ASSERT_TRUE(message) << message.error().line();
    EXPECT_FALSE(message->closed);
    EXPECT_EQ(message->bytes, expected);
  }
  auto end = receive_message(pair->ours.get(), 64);
  ASSERT_TRUE(end);
  EXPECT_TRUE(end->closed);
}

TEST(Messages, TooLargeIsAnErrorAndClosedIsSaid) {
  auto pair = make_seqpacket_pair();
  ASSERT_TRUE(pair);
  ASSERT_TRUE(send_message(pair->ours.get(), "12345"));
  auto large = receive_message(pair->theirs.get(), 4);
  ASSERT_FALSE(large);
  EXPECT_EQ(large.error().code, Code::protocol);
  pair->ours.reset();
  auto closed = receive_message(pair->theirs.get(), 4);
  ASSERT_TRUE(closed);
  EXPECT_TRUE(closed->closed);
  EXPECT_FALSE(send_message(pair->theirs.get(), "x"));  // an error, not SIGPIPE
}

}  // namespace
}  // namespace cofferdam
