// A Box against an init that lies: nothing it says may crash the host's side, start a program whose controls
// are not proven, or turn into a success.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>

#include "base/io.h"
#include "init/protocol.h"
#include "sandbox/controls.h"
#include "sandbox/native/box.h"
#include "support/world.h"

namespace cofferdam::sandbox {
namespace {

using Script = std::vector<std::string>;

std::string hex(std::string_view bytes) {
  std::string out;
  for (char c : bytes) {
    constexpr const char* kDigits = "0123456789abcdef";
    const auto byte = static_cast<unsigned char>(c);
    out.push_back(kDigits[byte >> 4U]);
    out.push_back(kDigits[byte & 15U]);
  }
  return out;
}

// One message: its kind and its fields.
std::string say(char kind, const std::vector<std::string>& fields = {}) {
  std::string bytes(1, kind);
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (i != 0) bytes.push_back('\0');
    bytes += fields[i];
  }
  return hex(bytes);
}

void append(Script* script, const Script& more) {
  script->insert(script->end(), more.begin(), more.end());
}

// What a good init says before go, and does: the outside probe reads its id map.
Script good_set_up() {
  Script script = {"map"};
  for (const contract::Control& control : contract::control_table()) {
    if (std::string(control.proven_by) == "outside") continue;
    script.push_back(say(plan::from_init::probe, {control.name, "1", "fine"}));
  }
  script.push_back(say(plan::from_init::ready));
  return script;
}

Result<Box> start(const Script& script, std::vector<std::uint16_t> listeners = {}) {
  auto null = open_file("/dev/null", O_RDONLY);
  if (!null) return null.error();
  contract::Profile profile;
  profile.kind = "test";
  profile.argv = script;
  profile.listeners = std::move(listeners);
  profile.deadline = std::chrono::seconds(30);
  BoxHost host;
  host.init = COFFERDAM_BUILD_DIR "/tests/fake-init";
  if (test::running_as_root()) host.run_as = UserIds{65533, 65533};
  return Box::start(host, {null->get(), null->get()}, profile);
}

Code refusal(const Script& script, std::vector<std::uint16_t> listeners = {}) {
  auto box = start(script, std::move(listeners));
  EXPECT_FALSE(box);
  return box ? Code::usage : box.error().code;
}

class HostileInit : public ::testing::Test {
 protected:
  void SetUp() override {
    auto box = start(good_set_up());
    if (!box) test::skip_or_fail("userns", "the scripted init cannot enter one: " + box.error().line());
  }
};

TEST_F(HostileInit, TheScriptedOneWorks) {
  Script script = good_set_up();
  append(&script, {"wait", say(plan::from_init::started), say(plan::from_init::exited, {"c", "7"}),
                   say(plan::from_init::gone, {"1", "10", "20", "30", "40", "50", "60"})});
  auto box = start(script);
  ASSERT_TRUE(box) << box.error().line();
  ASSERT_TRUE(box->go());
  auto report = box->receive();
  ASSERT_TRUE(report);
  EXPECT_EQ(report->kind, BoxReport::Kind::started);
  report = box->receive();
  ASSERT_TRUE(report);
  EXPECT_EQ(report->status.code, 7);
  report = box->receive();
  ASSERT_TRUE(report);
  EXPECT_EQ(report->kind, BoxReport::Kind::gone);
  EXPECT_TRUE(report->left_over);
  EXPECT_EQ(report->peak_bytes, 10U * 1024);
  EXPECT_EQ(report->work_inodes, 40U);
  report = box->receive();
  ASSERT_TRUE(report);
  EXPECT_EQ(report->kind, BoxReport::Kind::lost) << "the socket is closed";
  EXPECT_TRUE(box->wait_gone(std::chrono::seconds(30)));
}

TEST_F(HostileInit, SilenceAndNonsenseDuringSetUpAreErrors) {
  EXPECT_EQ(refusal({"not hexadecimal"}), Code::protocol);
  const Script cases[] = {
      {say(plan::from_init::pid, {"1"})},
      {say(plan::from_init::pid, {"not a number"})},
      {say(plan::from_init::probe)},
      {say(plan::from_init::probe, {"seccomp", "1"})},
      {say(plan::from_init::probe, {"seccomp", "1", "fine", "more"})},
      {say(plan::from_init::exited, {"c", "0"})},
      {say(plan::from_init::gone)},
      {say(plan::from_init::started)},
      {say('\0')},
      {say('?', {"unknown"})},
      {hex(std::string(plan::kMaxMessage + 1, 'B'))},
      {say(plan::from_init::listener, {"8080"})},
  };
  for (const Script& script : cases) EXPECT_EQ(refusal(script), Code::protocol) << script[0].substr(0, 60);
  EXPECT_EQ(refusal({say(plan::from_init::failed, {"write uid_map", "1"})}), Code::unsupported_host);
}

TEST_F(HostileInit, ListenersAreCounted) {
  Script none = good_set_up();
  EXPECT_EQ(refusal(none, {8080}), Code::protocol) << "one is missing";
  Script one = {"fd", say(plan::from_init::listener, {"8080"})};
  append(&one, good_set_up());
  EXPECT_EQ(refusal(one), Code::protocol) << "one that nobody asked for";
  EXPECT_EQ(refusal(one, {8080, 8081}), Code::protocol);
  auto box = start(one, {8080});
  ASSERT_TRUE(box) << box.error().line();
  EXPECT_EQ(box->listeners().size(), 1U);
}

// The outside probe is ours: an init that is not where a box's has to be cannot answer it instead.
TEST_F(HostileInit, TheOutsideProbeCannotBeAnsweredInside) {
  Script script = good_set_up();
  script[0] = say(plan::from_init::probe, {"host-root-unmapped", "1", "forged"});
  for (const std::string& pid :
       {std::string("1"), std::to_string(::getpid()), std::string("-1"), std::string()}) {
    Script one = {say(plan::from_init::pid, {pid})};
    append(&one, script);
    one.emplace_back("wait");
    auto box = start(one);
    ASSERT_FALSE(box) << "a pid that is not the launcher's child was taken: " << pid;
    EXPECT_STREQ(code_name(box.error().code), "protocol");
  }
}

TEST_F(HostileInit, ReadyWithoutProbesNeverGoes) {
  auto box = start({say(plan::from_init::ready), "wait"});
  ASSERT_TRUE(box) << box.error().line();
  Status go = box->go();
  ASSERT_FALSE(go);
  EXPECT_EQ(go.error().code, Code::unsupported_host);
}

TEST_F(HostileInit, OneUnprovenControlNeverGoes) {
  for (const contract::Control& control : contract::control_table()) {
    SCOPED_TRACE(control.name);
    Script script = good_set_up();
    const std::string good = say(plan::from_init::probe, {control.name, "1", "fine"});
    const std::string bad = say(plan::from_init::probe, {control.name, "yes", "not the word"});
    std::replace(script.begin(), script.end(), good, bad);
    // Whoever does not say who it is, and has no limits, has none of them; some of those are required.
    const bool outside = std::string(control.proven_by) == "outside";
    if (outside) script.erase(script.begin());
    script.emplace_back("wait");
    auto box = start(script);
    ASSERT_TRUE(box) << box.error().line();
    const bool required = contract::need_of(control, Requirements{}.mode, {}) == contract::Need::required;
    EXPECT_EQ(box->go().has_value(), !required && !outside);
  }
}

// The supervisor has an answer of its own: a second one can only make it worse.
TEST_F(HostileInit, AForgedPinnedRootIsNotInForce) {
  Script script = good_set_up();
  script.insert(script.begin() + 1, say(plan::from_init::probe, {"pinned-root", "1", "forged"}));
  script.emplace_back("wait");
  auto box = start(script);
  ASSERT_TRUE(box) << box.error().line();
  for (const contract::ControlFact& fact : box->controls()) {
    if (fact.name != "pinned-root") continue;
    EXPECT_FALSE(fact.enforced) << fact.proof;
  }
}

// After go: a malformed report may say less, never that all is well.
TEST_F(HostileInit, MalformedReportsAreNoSuccess) {
  const std::vector<std::vector<std::string>> exits = {{},
                                                       {"c"},
                                                       {"c", ""},
                                                       {"c", "-1"},
                                                       {"c", "0 "},
                                                       {"c", "0x0"},
                                                       {"", "0"},
                                                       {"z", "0"},
                                                       {"s", "0"},
                                                       {"c", "256"},
                                                       {"c", "4294967296"},
                                                       {"c", "99999999999999999999"},
                                                       {"c", "0", "0"}};
  for (const std::vector<std::string>& fields : exits) {
    Script script = good_set_up();
    append(&script, {"wait", say(plan::from_init::exited, fields)});
    auto box = start(script);
    ASSERT_TRUE(box) << box.error().line();
    ASSERT_TRUE(box->go());
    auto report = box->receive();
    const bool success = report && report->kind == BoxReport::Kind::exited && report->status.success();
    std::string text;
    for (const std::string& field : fields) text += "'" + field + "' ";
    EXPECT_FALSE(success) << text;
  }
}

TEST_F(HostileInit, AbsurdNumbersAreRefused) {
  for (const std::string& message :
       {say(plan::from_init::gone, {"1", "9223372036854775807", "x", "-3", "5", "6", "7"}),
        say(plan::from_init::gone, {"1", "1", "x", "3", "4", "5", "6"}),
        say(plan::from_init::gone, {"1", "1", "2", "3", "4", "5", "-6"}),
        say(plan::from_init::over, {"memory", "-1"}), say(plan::from_init::over, {"pids"}),
        say(plan::from_init::over, {"cpu", "5"}), say(plan::from_init::full, {"work-bytes", "5"}),
        say(plan::from_init::full, {"the moon"}), say(plan::from_init::not_started, {"18446744073709551617"}),
        say(plan::from_init::not_started)}) {
    Script script = good_set_up();
    append(&script, {"wait", message});
    auto box = start(script);
    ASSERT_TRUE(box) << box.error().line();
    ASSERT_TRUE(box->go());
    auto report = box->receive();
    ASSERT_FALSE(report);
    EXPECT_EQ(report.error().code, Code::protocol);
  }
}

TEST_F(HostileInit, LargeResidentSetDoesNotWrap) {
  Script script = good_set_up();
  append(&script,
         {"wait", say(plan::from_init::gone, {"1", "9223372036854775807", "1", "2", "3", "4", "5"})});
  auto box = start(script);
  ASSERT_TRUE(box) << box.error().line();
  ASSERT_TRUE(box->go());
  auto gone = box->receive();
  ASSERT_TRUE(gone);
  EXPECT_GT(gone->peak_bytes, 1ULL << 60U);
  EXPECT_EQ(gone->cpu_ms, 1U);
  EXPECT_EQ(gone->work_bytes, 2U);
  EXPECT_EQ(gone->work_inodes, 3U);
  EXPECT_EQ(gone->sampled_bytes, 4U);
  EXPECT_EQ(gone->peak_pids, 5U);
}

TEST_F(HostileInit, AMissingInitIsNamed) {
  contract::Profile profile;
  profile.kind = "test";
  profile.argv = {"x"};
  profile.deadline = std::chrono::seconds(1);
  BoxHost host;
  host.init = "/nonexistent/cofferdam-init";
  auto box = Box::start(host, {0, 0}, profile);
  ASSERT_FALSE(box);
  EXPECT_EQ(box.error().code, Code::missing_tool);
  profile.deadline = std::chrono::milliseconds(0);
  auto endless = Box::start(host, {0, 0}, profile);
  ASSERT_FALSE(endless);
  EXPECT_EQ(endless.error().code, Code::internal) << "a box without a deadline is a defect of ours";
}

}  // namespace
}  // namespace cofferdam::sandbox
