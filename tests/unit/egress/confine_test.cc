// The gateway gives its rights away before it reads anything hostile. Every probe runs inside a real gateway
// process, and its control runs in one that has not been confined yet.
#include <unistd.h>

#include <cstdlib>

#include "egress/gateway_filter.h"
#include "unit/egress/gateway_fixture.h"

namespace cofferdam::egress::testing {
namespace {

class ConfineTest : public GatewayTest {
 protected:
  void SetUp() override {
    GatewayTest::SetUp();
    start_vendor([](const VendorRequest&, VendorConnection*) {});
  }
  // What the gateway said instead of being ready.
  std::string run(const std::string& name) {
    program_ = named_program(name);
    auto gateway = try_gateway();
    return gateway ? "ready" : gateway.error().line();
  }
};

TEST_F(ConfineTest, NothingCanBeOpenedStartedOrReached) {
  for (const char* name :
       {"open-read", "open-self", "create", "stat", "unix", "netlink", "udp", "clone", "executable-memory",
        "memfd", "kill", "dumpable", "fast-open", "fast-open-message"}) {
    EXPECT_EQ(run(std::string("probe-") + name), "probe: EPERM") << name;
    EXPECT_EQ(run(std::string("control-") + name), "probe: possible") << name;
  }
  EXPECT_EQ(run("probe-tcp"), "probe: possible");  // what it is there for
}

TEST_F(ConfineTest, OnlyThePolicysPortsCanBeConnectedTo) {
  start_gateway();
  EXPECT_EQ(run("control-other-port"), "probe: possible");
  if (!gateway_->confinement().ports_limited) GTEST_SKIP() << "this kernel's Landlock knows no ports";
  EXPECT_EQ(run("probe-other-port"), "probe: EACCES");
}

TEST_F(ConfineTest, StartingAProgramIsTheEnd) {
  for (const char* name : {"exec", "fork", "ptrace"}) {
    EXPECT_EQ(run(std::string("probe-") + name), "the gateway ended while starting: signal 31") << name;
  }
  for (const char* name : {"fork", "ptrace"}) {
    EXPECT_EQ(run(std::string("control-") + name), "probe: possible") << name;
  }
  // The control for exec: /bin/true takes the gateway's place and ends well.
  EXPECT_EQ(run("control-exec"), "the gateway ended while starting: exit code 0");
}

TEST_F(ConfineTest, WhatIsInForceIsOnRecord) {
  start_gateway();
  auto status = read_file("/proc/" + std::to_string(gateway_->process().pid()) + "/status", 65536);
  ASSERT_TRUE(status.has_value());
  EXPECT_NE(status->find("Seccomp:\t2"), std::string::npos);
  EXPECT_NE(status->find("CapEff:\t0000000000000000"), std::string::npos);
  EXPECT_NE(status->find("CapPrm:\t0000000000000000"), std::string::npos);
  EXPECT_NE(status->find("Threads:\t1\n"), std::string::npos);
  auto limits = read_file("/proc/" + std::to_string(gateway_->process().pid()) + "/limits", 65536);
  ASSERT_TRUE(limits.has_value());
  // Name, soft and hard bound, in columns.
  EXPECT_NE(limits->find("Max processes             0                    0 "), std::string::npos) << *limits;
  EXPECT_NE(limits->find("Max file size             0                    0 "), std::string::npos) << *limits;
  EXPECT_NE(limits->find("Max open files            512                  512 "), std::string::npos)
      << *limits;
  if (gateway_->confinement().landlock_abi == 0) GTEST_SKIP() << "this kernel has no Landlock";
  EXPECT_GE(gateway_->confinement().landlock_abi, 1);
}

// Two descriptors for each connection, on top of what does not grow with them.
TEST_F(ConfineTest, DescriptorsFollowTheConnections) {
  policy_.max_connections = 200;
  start_gateway();
  auto limits = read_file("/proc/" + std::to_string(gateway_->process().pid()) + "/limits", 65536);
  ASSERT_TRUE(limits.has_value());
  EXPECT_NE(limits->find("Max open files            784                  784 "), std::string::npos)
      << *limits;
}

#ifndef __SANITIZE_ADDRESS__  // whose shadow is larger than the gateway
TEST_F(ConfineTest, AnIdleGatewayIsSmall) {
  start_gateway();
  auto status = read_file("/proc/" + std::to_string(gateway_->process().pid()) + "/status", 65536);
  ASSERT_TRUE(status.has_value());
  const std::size_t at = status->find("VmRSS:");
  ASSERT_NE(at, std::string::npos);
  EXPECT_LT(std::strtoull(status->c_str() + at + 6, nullptr, 10), 8U * 1024U);
}
#endif

TEST(GatewayFilter, StaysSmallAndGivesAReasonForEveryCall) {
  auto filter = compile_gateway_filter();
  ASSERT_TRUE(filter.has_value()) << filter.error().line();
  EXPECT_LT(filter->size() / 8, 250U);
  for (const AllowedCall& call : allowed_calls()) EXPECT_STRNE(call.reason, "") << call.name;
  for (const AllowedCall& call : fatal_calls()) EXPECT_STRNE(call.reason, "") << call.name;
}

}  // namespace
}  // namespace cofferdam::egress::testing
