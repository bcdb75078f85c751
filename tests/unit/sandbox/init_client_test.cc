// Decoding what an init says: every byte may be a forger's.
#include "init/client.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "base/io.h"

namespace cofferdam::init_client {
namespace {

class InitClient : public ::testing::Test {
 protected:
  void SetUp() override {
    auto pair = make_seqpacket_pair();
    ASSERT_TRUE(pair) << pair.error().line();
    pair_ = std::move(*pair);
  }
  void say(std::string_view bytes) { ASSERT_TRUE(send_message(pair_.theirs.get(), bytes)); }
  void say_with_fds(std::string_view text, std::size_t count) {
    std::string bytes(text);
    iovec io{bytes.data(), bytes.size()};
    msghdr header{};
    header.msg_iov = &io;
    header.msg_iovlen = 1;
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int) * 16)> control{};
    header.msg_control = control.data();
    header.msg_controllen = CMSG_SPACE(sizeof(int) * count);
    cmsghdr* c = CMSG_FIRSTHDR(&header);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof(int) * count);
    std::vector<int> fds(count, pair_.theirs.get());
    std::memcpy(CMSG_DATA(c), fds.data(), sizeof(int) * count);
    ASSERT_GE(::sendmsg(pair_.theirs.get(), &header, MSG_NOSIGNAL), 0);
  }
  Result<InitMessage> hear() { return receive(pair_.ours.get()); }
  SocketPair pair_;
};

using Fields = std::vector<std::string>;

TEST_F(InitClient, KindAndFields) {
  struct Case {
    std::string bytes;
    char kind;
    Fields fields;
  };
  const Case cases[] = {
      {"R", 'R', {""}},
      {"P123", 'P', {"123"}},
      {std::string("Bnetwork\0001\0only lo", 18), 'B', {"network", "1", "only lo"}},
      {std::string("B\0\0", 3), 'B', {"", "", ""}},
      {std::string("B\0", 2), 'B', {"", ""}},
      {std::string("\0", 1), 0, {""}},
      {"\xff\xfe", '\xff', {"\xfe"}},
  };
  for (const Case& one : cases) {
    say(one.bytes);
    auto message = hear();
    ASSERT_TRUE(message);
    EXPECT_EQ(message->kind, one.kind);
    EXPECT_EQ(message->fields, one.fields);
    EXPECT_TRUE(message->fds.empty());
  }
}

TEST_F(InitClient, AClosedSocketIsKindZeroWithoutFields) {
  pair_.theirs.reset();
  auto message = hear();
  ASSERT_TRUE(message);
  EXPECT_EQ(message->kind, 0);
  EXPECT_TRUE(message->fields.empty());
}

TEST_F(InitClient, MessagesAreBounded) {
  say("B" + std::string(plan::kMaxMessage - 1, 'x'));
  auto largest = hear();
  ASSERT_TRUE(largest);
  EXPECT_EQ(largest->fields[0].size(), plan::kMaxMessage - 1);
  say("B" + std::string(plan::kMaxMessage, 'x'));
  auto larger = hear();
  ASSERT_FALSE(larger) << "never cut and believed";
  EXPECT_EQ(larger.error().code, Code::protocol);
  say("R");
  EXPECT_TRUE(hear()) << "the next message is whole again";
}

TEST_F(InitClient, DescriptorsArriveCloseOnExec) {
  say_with_fds("L8080", 1);
  auto message = hear();
  ASSERT_TRUE(message);
  ASSERT_EQ(message->fds.size(), 1U);
  EXPECT_EQ(::fcntl(message->fds[0].get(), F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
}

// More than fit are a protocol error, and none of them stays open.
TEST_F(InitClient, TooManyDescriptorsAreRefusedAndClosed) {
  auto lowest_free = [] { return UniqueFd(::open("/dev/null", O_RDONLY | O_CLOEXEC)).get(); };
  const int before = lowest_free();
  say_with_fds("L8080", 12);
  auto message = hear();
  ASSERT_FALSE(message);
  EXPECT_EQ(message.error().code, Code::protocol);
  EXPECT_EQ(lowest_free(), before);
}

TEST(ParseNumber, DecimalTextOnly) {
  EXPECT_EQ(parse_number("0"), 0U);
  EXPECT_EQ(parse_number("65535"), 65535U);
  EXPECT_EQ(parse_number("9223372036854775807"), 9223372036854775807ULL);
  const std::string with_nul("1\0", 2);
  for (const std::string& bad :
       {std::string(), std::string("-1"), std::string("+1"), std::string(" 1"), std::string("1 "),
        std::string("0x10"), std::string("1e3"), std::string("1.0"), std::string("9223372036854775808"),
        std::string("18446744073709551616"), std::string("99999999999999999999999"), std::string("one"),
        with_nul}) {
    EXPECT_EQ(parse_number(bad), std::nullopt) << "'" << bad << "'";
  }
}

InitMessage failed(Fields fields) {
  InitMessage message;
  message.kind = plan::from_init::failed;
  message.fields = std::move(fields);
  return message;
}

TEST(SetupError, NamesBoxStepAndErrno) {
  Error error = setup_error("agent", failed({"mount proc", "22"}));
  EXPECT_NE(error.what.find("agent box"), std::string::npos) << error.what;
  EXPECT_NE(error.what.find("mount proc"), std::string::npos) << error.what;
  EXPECT_NE(error.what.find(std::strerror(EINVAL)), std::string::npos) << error.what;
}

TEST(SetupError, AHostWithoutUserNamespacesIsUnsupported) {
  for (const char* step : {"create a user namespace", "write uid_map"}) {
    Error error = setup_error("storage", failed({step, "1"}));
    EXPECT_EQ(error.code, Code::unsupported_host) << step;
    EXPECT_NE(error.hint.find("doctor"), std::string::npos);
  }
}

TEST(SetupError, MalformedOnesAreStillErrors) {
  const std::vector<Fields> cases = {
      {}, {""}, {"step"}, {"step", "not a number"}, {"step", "99999999999"}, {"\x1b[2J\xff", "5", "more"}};
  for (const Fields& fields : cases) {
    Error error = setup_error("agent", failed(fields));
    EXPECT_NE(error.what.find("agent box"), std::string::npos) << error.what;
    EXPECT_EQ(error.what.find('\x1b'), std::string::npos);
    EXPECT_EQ(error.what.find('\xff'), std::string::npos);
    EXPECT_LT(error.what.size(), 400U);
  }
}

}  // namespace
}  // namespace cofferdam::init_client
