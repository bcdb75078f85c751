// The broker as a process: its sources, the single refresh, what becomes of a login (attacks.md E1, E2, G18).
#include <linux/keyctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <thread>

#include "base/clock.h"
#include "base/io.h"
#include "base/text.h"
#include "unit/egress/broker_fixture.h"

namespace cofferdam::egress::testing {
namespace {

using contract::CredentialSource;

constexpr std::int64_t kHour = 3'600'000;
constexpr std::int64_t kPast = -1000;

// Whether somebody waits for a flock(2) of the file: the kernel's own list.
bool somebody_waits_for(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return false;
  auto locks = read_file("/proc/locks", 1U << 20U);
  if (!locks) return false;
  for (const std::string& line : split(*locks, '\n')) {
    if (line.find("-> FLOCK") != std::string::npos &&
        line.find(":" + std::to_string(info.st_ino) + " ") != std::string::npos) {
      return true;
    }
  }
  return false;
}

void wait_for_a_waiter(const std::string& path) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (!somebody_waits_for(path) && std::chrono::steady_clock::now() < end) std::this_thread::yield();
  EXPECT_TRUE(somebody_waits_for(path));
}

TEST_F(BrokerTest, TakesTheKeyFromTheEnvironment) {
  auto broker = start("ANTHROPIC_API_KEY", "S3CR3T-key");
  ASSERT_TRUE(broker) << broker.error().line();
  EXPECT_EQ(broker->kind(), CredentialKind::anthropic_api_key);
  UniqueFd socket = broker->take_socket();
  EXPECT_EQ(token_of(next_grant(socket.get())), "S3CR3T-key");
  // There is no other one to be had.
  ASSERT_TRUE(send_message(socket.get(), encode_renewal_request({1, true})));
  Grant grant = next_grant(socket.get());
  EXPECT_FALSE(grant.credential.has_value());
  expect_no_secret(grant.refusal);
}

TEST_F(BrokerTest, ALoginInTheEnvironmentStandsInForAKey) {
  auto broker = start("CLAUDE_CODE_OAUTH_TOKEN", "sk-ant-oat01-S3CR3T");
  ASSERT_TRUE(broker) << broker.error().line();
  EXPECT_EQ(broker->kind(), CredentialKind::anthropic_oauth);
  vendor_.bearer = true;
  auto other = start("ANTHROPIC_API_KEY", "S3CR3T-internal");
  ASSERT_TRUE(other);
  EXPECT_EQ(other->kind(), CredentialKind::bearer);
  auto none = start();
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, Code::config);
  EXPECT_NE(none.error().line().find("ANTHROPIC_API_KEY"), std::string::npos);
}

TEST_F(BrokerTest, RunsACommandWithoutAShell) {
  vendor_.credential = CredentialSource::command;
  vendor_.credential_command = {"/bin/echo", "S3CR3T-$HOME"};
  auto broker = start();
  ASSERT_TRUE(broker) << broker.error().line();
  UniqueFd socket = broker->take_socket();
  EXPECT_EQ(token_of(next_grant(socket.get())), "S3CR3T-$HOME");
}

TEST_F(BrokerTest, ACommandThatFailsIsToldWithoutItsOutput) {
  vendor_.credential = CredentialSource::command;
  for (const char* script : {"echo S3CR3T; echo S3CR3T >&2; exit 3", "echo S3CR3T a; exit 0", "exit 0",
                             "head -c 100000 /dev/zero | tr '\\0' S"}) {
    vendor_.credential_command = {"/bin/sh", "-c", script};
    auto broker = start();
    ASSERT_FALSE(broker) << script;
    EXPECT_EQ(broker.error().line().find("S3CR3T a"), std::string::npos);
    expect_no_secret(broker.error().line());
  }
  vendor_.credential_command = {"/nonexistent/program"};
  EXPECT_FALSE(start());
}

TEST_F(BrokerTest, ReadsTheKernelsKeyring) {
  const std::string name = "cofferdam-test-" + random_hex(6);
  const char secret[] = "S3CR3T-ring";
  const long key =
      ::syscall(SYS_add_key, "user", name.c_str(), secret, sizeof secret - 1, KEY_SPEC_USER_KEYRING);
  if (key < 0) GTEST_SKIP() << "no kernel keyring here: errno " << errno;
  vendor_.credential = CredentialSource::keyring;
  vendor_.keyring = name;
  auto broker = start();
  EXPECT_TRUE(broker) << broker.error().line();
  if (broker) {
    UniqueFd socket = broker->take_socket();
    EXPECT_EQ(token_of(next_grant(socket.get())), "S3CR3T-ring");
  }
  ::syscall(SYS_keyctl, KEYCTL_UNLINK, key, KEY_SPEC_USER_KEYRING);
  auto gone = start();
  ASSERT_FALSE(gone);
  EXPECT_EQ(gone.error().code, Code::not_found);
}

TEST_F(BrokerTest, IsHardenedAndKeepsItsSecretToItself) {
  auto broker = start("ANTHROPIC_API_KEY", "S3CR3T-key");
  ASSERT_TRUE(broker) << broker.error().line();
  const std::string proc = "/proc/" + std::to_string(broker->process().pid());
  auto cmdline = read_file(proc + "/cmdline", 65536);
  ASSERT_TRUE(cmdline);
  EXPECT_NE(cmdline->find("internal-broker"), std::string::npos);
  expect_no_secret(*cmdline);
  auto status = read_file(proc + "/status", 65536);
  ASSERT_TRUE(status);
  EXPECT_NE(status->find("NoNewPrivs:\t1"), std::string::npos);
  auto limits = read_file(proc + "/limits", 65536);
  if (limits) {
    EXPECT_NE(limits->find("Max core file size        0                    0"), std::string::npos) << *limits;
    EXPECT_NE(limits->find("Max open files            256                  256"), std::string::npos);
  }
  // Not dumpable: its files in /proc are root's, whoever runs it.
  struct stat info {};
  ASSERT_EQ(::stat((proc + "/environ").c_str(), &info), 0);
  EXPECT_EQ(info.st_uid, 0U);
  auto environment = read_file(proc + "/environ", 65536);
  if (environment) {
    EXPECT_EQ(*environment, "");
  }
}

TEST_F(BrokerTest, EndsWithTheGateway) {
  auto broker = start("ANTHROPIC_API_KEY", "S3CR3T-key");
  ASSERT_TRUE(broker);
  broker->take_socket().reset();
  auto status = broker->process().wait(std::chrono::seconds(30));
  ASSERT_TRUE(status);
  EXPECT_TRUE(status->success());
}

TEST_F(BrokerTest, AGoodLoginIsLeftAlone) {
  start_endpoint();
  write_login("S3CR3T-a1", "S3CR3T-r1", kHour);
  const std::string before = login_text();
  auto broker = start();
  ASSERT_TRUE(broker) << broker.error().line();
  UniqueFd socket = broker->take_socket();
  Grant grant = next_grant(socket.get());
  EXPECT_EQ(token_of(grant), "S3CR3T-a1");
  EXPECT_GT(grant.credential->expires_at_ms, now().ms);
  EXPECT_EQ(endpoint_->count(), 0U);
  EXPECT_EQ(login_text(), before);
}

// E1: the login is refreshed on the host and written back, with the mode that it had.
TEST_F(BrokerTest, AnExpiredLoginIsRefreshedAndWrittenBack) {
  start_endpoint();
  write_login("S3CR3T-a1", "S3CR3T-r1", kPast);
  ASSERT_EQ(::chmod(login_path().c_str(), 0640), 0);
  auto broker = start();
  ASSERT_TRUE(broker) << broker.error().line();
  UniqueFd socket = broker->take_socket();
  Grant grant = next_grant(socket.get());
  EXPECT_EQ(token_of(grant), "S3CR3T-a2");
  ASSERT_EQ(endpoint_->count(), 1U);
  EXPECT_NE(endpoint_->requests()[0].body.find("\"grant_type\":\"refresh_token\""), std::string::npos);
  EXPECT_NE(login_text().find("S3CR3T-r2"), std::string::npos);
  EXPECT_NE(login_text().find("subscriptionType"), std::string::npos);
  EXPECT_EQ(login_text().find("S3CR3T-r1"), std::string::npos);
  struct stat info {};
  ASSERT_EQ(::stat(login_path().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777U, 0640U);
  // What the gateway asks for after a 401 is a new one, though the last has not expired.
  ASSERT_TRUE(send_message(socket.get(), encode_renewal_request({1, true})));
  Grant second = next_grant(socket.get());
  EXPECT_EQ(token_of(second), "S3CR3T-a3");
  EXPECT_EQ(second.credential->seq, 2U);
}

// E1: a token that works once is not spent when its successor could not be kept.
TEST_F(BrokerTest, WhatCannotBeWrittenBackIsNotRefreshed) {
  start_endpoint();
  write_login("S3CR3T-a1", "S3CR3T-r1", kPast);
  ASSERT_TRUE(make_new_dir(lock_path()));
  auto broker = start();
  ASSERT_FALSE(broker);
  EXPECT_EQ(broker.error().code, Code::denied);
  expect_no_secret(broker.error().line());
  EXPECT_EQ(endpoint_->count(), 0U);
}

// E2: the second comes while the first one's refresh is on its way, waits, and finds the new token.
TEST_F(BrokerTest, TwoAttemptsGiveOneRefresh) {
  std::optional<Result<Broker>> second;
  std::thread other;
  std::atomic<bool> begun = false;
  start_endpoint([&] {
    if (begun.exchange(true)) return;
    other = std::thread([&] { second.emplace(start()); });
    wait_for_a_waiter(lock_path());
  });
  write_login("S3CR3T-a1", "S3CR3T-r1", kPast);
  auto first = start();
  ASSERT_TRUE(begun);
  other.join();
  ASSERT_TRUE(first) << first.error().line();
  ASSERT_TRUE(second->has_value()) << second->error().line();
  UniqueFd one = first->take_socket();
  UniqueFd two = (*second)->take_socket();
  EXPECT_EQ(token_of(next_grant(one.get())), "S3CR3T-a2");
  EXPECT_EQ(token_of(next_grant(two.get())), "S3CR3T-a2");
  EXPECT_EQ(endpoint_->count(), 1U);
}

// The control of E2: the endpoint does refuse a refresh token that was used before.
TEST_F(BrokerTest, ControlARefreshTokenWorksOnce) {
  start_endpoint();
  write_login("S3CR3T-a1", "S3CR3T-r1", kPast);
  ASSERT_TRUE(start());
  write_login("S3CR3T-a1", "S3CR3T-r1", kPast);  // as if the first had not written back
  auto second = start();
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, Code::denied);
  EXPECT_NE(second.error().line().find("login expired"), std::string::npos);
  EXPECT_NE(second.error().line().find("invalid_grant"), std::string::npos);
  EXPECT_NE(second.error().hint.find("log in again"), std::string::npos);
  expect_no_secret(second.error().line());
  EXPECT_EQ(endpoint_->count(), 2U);
}

// G18: the user's own CLI, which knows no lock of ours, was faster.
TEST_F(BrokerTest, TheUsersOwnCliMayHaveRefreshedMeanwhile) {
  start_endpoint([this] { write_login("S3CR3T-cli", "S3CR3T-r9", kHour); });
  write_login("S3CR3T-a1", "S3CR3T-used", kPast);
  auto broker = start();
  ASSERT_TRUE(broker) << broker.error().line();
  UniqueFd socket = broker->take_socket();
  EXPECT_EQ(token_of(next_grant(socket.get())), "S3CR3T-cli");
  EXPECT_EQ(endpoint_->count(), 1U);
  EXPECT_NE(login_text().find("S3CR3T-r9"), std::string::npos);
}

TEST_F(BrokerTest, AnEndpointThatIsNotVerifiedGetsNothing) {
  start_endpoint();
  write_login("S3CR3T-a1", "S3CR3T-r1", kPast);
  const Certificate other("IP:127.0.0.1");
  ASSERT_TRUE(write_file_atomic(vendor_.ca_bundle, other.pem()));
  auto broker = start();
  ASSERT_FALSE(broker);
  EXPECT_NE(broker.error().line().find("vendor-tls"), std::string::npos) << broker.error().line();
  EXPECT_EQ(endpoint_->count(), 0U);
  EXPECT_NE(login_text().find("S3CR3T-r1"), std::string::npos);
}

TEST_F(BrokerTest, ATokenThatStillWorksIsUsedWhenTheEndpointIsGone) {
  start_endpoint();
  write_login("S3CR3T-a1", "S3CR3T-r1", 120'000);
  endpoint_.reset();
  auto broker = start();
  ASSERT_TRUE(broker) << broker.error().line();
  UniqueFd socket = broker->take_socket();
  EXPECT_EQ(token_of(next_grant(socket.get())), "S3CR3T-a1");
}

TEST(TakeVariable, LeavesNothingBehind) {
  ::setenv("COFFERDAM_TEST_SECRET", "S3CR3T-env", 1);
  char* place = ::getenv("COFFERDAM_TEST_SECRET");
  auto taken = take_variable("COFFERDAM_TEST_SECRET");
  ASSERT_TRUE(taken.has_value());
  EXPECT_EQ(taken->view(), "S3CR3T-env");
  EXPECT_EQ(*place, '\0');
  EXPECT_EQ(::getenv("COFFERDAM_TEST_SECRET"), nullptr);
  EXPECT_FALSE(take_variable("COFFERDAM_TEST_SECRET").has_value());
}

}  // namespace
}  // namespace cofferdam::egress::testing
