// What a program in the box cannot do. Every denial has its control: the same act, outside the box or in an
// allowed place, works in the same test.
#include <fmt/core.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/io.h"
#include "base/text.h"
#include "e2e/fixture.h"
#include "unit/egress/tls_vendor.h"

namespace cofferdam::test {
namespace {

class Denial : public EndToEnd {};

TEST_P(Denial, UsersHomeIsAbsent) {
  const std::string secret = world().home() + "/.ssh/id_test";
  world().write(secret, "a private key\n", 0600);
  const std::string act = "cat " + secret;
  RunOutcome inside = run_script(act + "; ls -A /home /root /mnt /var/tmp 2>&1; ls -A /");
  EXPECT_EQ(printed(inside).find("a private key"), std::string::npos);
  EXPECT_EQ(printed(inside).find(world().root()), std::string::npos) << printed(inside);
  EXPECT_NE(outside(act).out.find("a private key"), std::string::npos) << "the control";
}

TEST_P(Denial, NoAddressIsReachable) {
  std::uint16_t port = 0;
  const UniqueFd listener = egress::testing::listen_on_loopback(&port);
  ASSERT_TRUE(set_nonblocking(listener.get(), true).has_value());
  const std::string act = fmt::format("bash -c 'exec 3<> /dev/tcp/127.0.0.1/{} && echo connected'", port);

  RunOutcome inside =
      run_script(act + "; bash -c 'exec 3<> /dev/tcp/192.0.2.1/443' 2>&1; getent hosts example.com; true");
  EXPECT_EQ(printed(inside).find("connected"), std::string::npos);
  EXPECT_NE(printed(inside).find("unreachable"), std::string::npos) << printed(inside);
  EXPECT_LT(::accept4(listener.get(), nullptr, nullptr, 0), 0) << "somebody connected from the box";

  EXPECT_NE(outside(act).out.find("connected"), std::string::npos) << "the control";
  EXPECT_GE(UniqueFd(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC)).get(), 0);
}

TEST_P(Denial, HostSocketsAreAbsent) {
  const std::string path = world().home() + "/host.sock";
  const std::string serve =
      "import socket,os,sys\ns=socket.socket(socket.AF_UNIX)\ns.connect('" + path + "')\nprint('connected')";
  UniqueFd listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  Captured made =
      world().as_user({"/usr/bin/python3", "-c",
                       "import socket,subprocess\ns=socket.socket(socket.AF_UNIX)\ns.bind('" + path +
                           "')\ns.listen(1)\nr=subprocess.run(['/usr/bin/python3','-c',\"" +
                           "import socket\\nc=socket.socket(socket.AF_UNIX)\\nc.connect('" + path +
                           "')\\nprint('connected')\"])"});
  EXPECT_NE(made.out.find("connected"), std::string::npos) << "the control: " << made.err;
  RunOutcome inside =
      run_script("python3 -c \"" + serve + "\" 2>&1; ls /run/docker.sock /var/run/docker.sock 2>&1; true");
  EXPECT_EQ(printed(inside).find("connected"), std::string::npos) << printed(inside);
  EXPECT_NE(printed(inside).find("No such file"), std::string::npos) << printed(inside);
}

TEST_P(Denial, WritesOutsideTheThreePlaces) {
  RunOutcome inside = run_script(
      "for p in / /usr /usr/bin /etc /dev /home /opt /proc /run /var; do "
      "if (: > $p/planted) 2> /dev/null; then echo \"written $p\"; fi; done; "
      "for p in /workspace /tmp \"$HOME\" /dev/shm; do (: > $p/planted) && echo \"control $p\"; done");
  EXPECT_EQ(printed(inside).find("written"), std::string::npos) << printed(inside);
  for (const char* place : {"/workspace", "/tmp", "/home/agent", "/dev/shm"}) {
    EXPECT_NE(printed(inside).find(std::string("control ") + place), std::string::npos) << place;
  }
}

TEST_P(Denial, NoProcessOutlivesSettlement) {
  const std::string tail = random_hex(8);
  const std::string marker = "survivor-" + tail;
  const std::string name = "sur$(printf vivor)-" + tail;
  const std::string act = "(setsid bash -c \"exec -a " + name +
                          " sleep 600\" < /dev/null > /dev/null 2>&1 &); "
                          "(trap '' TERM HUP; exec bash -c \"exec -a " +
                          name + " sleep 600\" > /dev/null 2>&1 &); true";
  RunOutcome inside = run_script(act);
  EXPECT_EQ(inside.status.code, 0);
  EXPECT_TRUE(inside.result->settlement.box_gone_at.has_value());
  EXPECT_TRUE(processes_with(marker).empty());
  // The control: outside they do live on.
  outside(act);
  std::vector<int> survivors = processes_with(marker);
  EXPECT_FALSE(survivors.empty());
  for (int pid : survivors) ::kill(pid, SIGKILL);
}

TEST_P(Denial, CorePatternCannotBeOpenedForWriting) {
  const std::string act = "(: >> /proc/sys/kernel/core_pattern) && echo opened";
  RunOutcome inside =
      run_script(act + "; cat /proc/sys/kernel/core_pattern > /dev/null && echo readable; true");
  EXPECT_EQ(printed(inside).find("opened"), std::string::npos);
  EXPECT_NE(printed(inside).find("readable"), std::string::npos) << "the file is there";
  if (GetParam() == User::root) {
    EXPECT_NE(outside(act).out.find("opened"), std::string::npos) << "the control: the caller may";
  }
}

TEST_P(Denial, HostRootIsNotMapped) {
  RunOutcome inside = run_script("cat /proc/self/uid_map; id -u; : > mine");
  EXPECT_NE(printed(inside).find("1000"), std::string::npos);
  bool proven = false;
  for (const contract::ControlFact& control : inside.result->controls) {
    if (control.name == "host-root-unmapped") proven = control.enforced;
  }
  EXPECT_TRUE(proven);
}

TEST_P(Denial, GitMetadataCannotBeReplaced) {
  RunOutcome inside = run_script(
      "rm -rf .git 2>/dev/null; mv .git moved 2>/dev/null; "
      "(: > .git/hooks) 2>/dev/null && echo planted; (echo x >> .git/config) 2>/dev/null && echo planted; "
      "git -C /tmp init -q control && touch /tmp/control/.git/hook && echo control");
  EXPECT_EQ(printed(inside).find("planted"), std::string::npos);
  EXPECT_NE(printed(inside).find("control"), std::string::npos);
}

TEST_P(Denial, StorageBoundIsExact) {
  world().write(world().config(), "[limits]\nwork_bytes = 33554432\nwork_inodes = 1000\n");
  RunOutcome bytes = run_script(
      "dd if=/dev/zero of=big bs=1M count=16 2>/dev/null && echo control; rm big; "
      "dd if=/dev/zero of=big bs=1M count=64 2>&1 | tail -n 1; ls -l big | awk '{print $5}'; rm -f big",
      {"--config", world().config()});
  EXPECT_NE(printed(bytes).find("control"), std::string::npos);
  std::vector<std::string> lines = split(trim(printed(bytes)), '\n');
  EXPECT_LE(std::stoull(lines.back()), 33554432ULL) << printed(bytes);
  RunOutcome inodes = run_script(
      "i=0; while [ $i -lt 2000 ]; do (: > f$i) 2>/dev/null || break; i=$((i+1)); done; echo $i; rm -f f*",
      {"--config", world().config()});
  EXPECT_LT(std::stoull(std::string(trim(printed(inodes)))), 1000ULL);
  EXPECT_GT(std::stoull(std::string(trim(printed(inodes)))), 900ULL);
}

// A descriptor that the caller leaks is not the box's.
TEST_P(Denial, LeakedDescriptorDoesNotArrive) {
  SpawnOptions options =
      world().cofferdam_options({"run", "--json", "--agent", "command", "--attempt-id", "leak", "--",
                                 "/bin/sh", "-c", "ls -l /proc/self/fd; cat <&7"});
  auto leaked = open_file("/etc/hostname", 0);
  ASSERT_TRUE(leaked);
  options.fds.push_back({leaked->get(), 7});
  auto captured = run_capture(options, "", {});
  ASSERT_TRUE(captured);
  auto text = read_file(world().state() + "/attempts/leak/stdout", 65536);
  ASSERT_TRUE(text) << captured->err;
  EXPECT_EQ(text->find(" 7 ->"), std::string::npos) << *text;
  // The control: the same descriptor does arrive in a program started without a box.
  SpawnOptions plain = options;
  plain.program = "/bin/sh";
  plain.argv = {"sh", "-c", "ls -l /proc/self/fd"};
  auto control = run_capture(plain, "", {});
  ASSERT_TRUE(control);
  EXPECT_NE(control->out.find(" 7 ->"), std::string::npos);
}

COFFERDAM_FOR_BOTH_USERS(Denial);

}  // namespace
}  // namespace cofferdam::test
