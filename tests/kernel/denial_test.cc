// One probe per forbidden act. Each row says what errno the act gets in a box, what it gets in a box whose
// system-call filter allows everything (which is what the other layers are worth), and the control: the same
// act where it is allowed.
#include <linux/sched.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>

#include "base/fd.h"
#include "base/file.h"
#include "base/text.h"
#include "kernel/fixture.h"

namespace cofferdam::test {
namespace {

enum class Where {
  inside,   // the allowed form, in the box
  outside,  // without a box, as the same user
  own,      // without a box, as root of namespaces of its own
  root,     // without a box, as root
};

struct Denied {
  Args act;
  const char* error;
  const char* below;  // without the filter; "works": the filter is the only layer
  Where where;
  Args control;
  const char* allowed = "works";
};

class Denial : public Kernel {
 protected:
  void expect_denied(const std::vector<Denied>& table) {
    if (!ready()) return;
    std::string missing;
    for (const Denied& row : table) {
      SCOPED_TRACE(join(row.act, " "));
      EXPECT_EQ(in_box(row.act), std::string(row.error) + "\n");
      EXPECT_EQ(driver("below", row.act), std::string(row.below) + "\n") << "without the filter";
      const std::string control = run_control(row);
      if (lacks(control)) {
        missing += " " + join(row.control, "-") + " (" + std::string(trim(control)) + ")";
      } else {
        EXPECT_EQ(control, std::string(row.allowed) + "\n") << "the control: " << join(row.control, " ");
      }
    }
    // The denials themselves are judged by now.
    if (!missing.empty() && !HasFailure()) skip_or_fail("controls", "no control for" + missing);
  }

 private:
  std::string run_control(const Denied& row) const {
    if (row.where == Where::inside) return in_box(row.control);
    if (row.where == Where::outside) return outside(row.control);
    if (row.where == Where::root) return running_as_root() ? outside_as_root(row.control) : "needs root";
    Args own = {"--own"};
    own.insert(own.end(), row.control.begin(), row.control.end());
    return outside(own);
  }
  // The kernel, or this user, cannot show what is denied.
  static bool lacks(const std::string& control) {
    return control == "ENOSYS\n" || control == "EAFNOSUPPORT\n" || control == "EPROTONOSUPPORT\n" ||
           control == "needs root";
  }
};

TEST_P(Denial, Mounts) {
  expect_denied({
      {{"mount-tmpfs", "/tmp"}, "EPERM", "EPERM", Where::own, {"mount-tmpfs", "/tmp"}},
      {{"mount-tmpfs", "/home/agent"}, "EPERM", "EPERM", Where::own, {"mount-tmpfs", "/tmp"}},
      {{"mount-bind", "/usr", "/tmp"}, "EPERM", "EPERM", Where::own, {"mount-bind", "/usr", "/tmp"}},
      {{"umount", "/tmp"}, "EPERM", "EPERM", Where::own, {"umount", "/tmp"}},
      {{"umount", "/workspace/.git"}, "EPERM", "EPERM", Where::own, {"umount", "/tmp"}},
      {{"umount", "/proc/sys"}, "EPERM", "EPERM", Where::own, {"umount", "/tmp"}},
      {{"remount-bigger", "/workspace"}, "EPERM", "EPERM", Where::own, {"remount-bigger", "/tmp"}},
      {{"remount-bigger", "/tmp"}, "EPERM", "EPERM", Where::own, {"remount-bigger", "/tmp"}},
      {{"remount-writable", "/usr"}, "EPERM", "EPERM", Where::own, {"remount-writable", "/tmp"}},
      {{"remount-writable", "/workspace/.git"}, "EPERM", "EPERM", Where::own, {"remount-writable", "/tmp"}},
      {{"chroot", "/tmp"}, "EPERM", "EPERM", Where::own, {"chroot", "/tmp"}},
      {{"fsopen"}, "ENOSYS", "EPERM", Where::own, {"fsopen"}},
      {{"open-tree", "/usr"}, "ENOSYS", "EPERM", Where::own, {"open-tree", "/usr"}},
      {{"mount-setattr", "/tmp"}, "ENOSYS", "EPERM", Where::own, {"mount-setattr", "/tmp"}},
  });
}

std::string flag(int value) {
  return std::to_string(value);
}

TEST_P(Denial, Namespaces) {
  const std::string user = flag(CLONE_NEWUSER);
  std::vector<Denied> table = {
      // Below the filter, the box's user namespace may have no other in it.
      {{"unshare", user}, "EPERM", "ENOSPC", Where::own, {"unshare", user}},
      {{"clone", user}, "EPERM", "ENOSPC", Where::own, {"clone", user}},
      {{"clone3", user}, "ENOSYS", "ENOSPC", Where::own, {"clone3", user}},
      // clone3 hides its flags from a filter: there is none at all, and everybody falls back to clone.
      {{"clone3", "0"}, "ENOSYS", "works", Where::inside, {"clone", "0"}},
      {{"setns", "/proc/self/ns/net", flag(CLONE_NEWNET)},
       "EPERM",
       "EPERM",
       Where::own,
       {"setns", "/proc/self/ns/net", flag(CLONE_NEWNET)}},
      // The namespaces of init cannot even be opened.
      {{"setns", "/proc/1/ns/net", "0"},
       "EACCES",
       "EACCES",
       Where::inside,
       {"open-read", "/proc/self/ns/net"}},
      {{"sethostname"}, "EPERM", "EPERM", Where::own, {"sethostname"}},
  };
  for (int kind : {CLONE_NEWNS, CLONE_NEWPID, CLONE_NEWNET, CLONE_NEWIPC, CLONE_NEWUTS, CLONE_NEWCGROUP}) {
    for (const char* how : {"unshare", "clone"}) {
      table.push_back({{how, flag(kind)}, "EPERM", "EPERM", Where::own, {how, flag(kind)}});
    }
  }
  table.push_back(
      {{"unshare", flag(CLONE_NEWTIME)}, "EPERM", "EPERM", Where::own, {"unshare", flag(CLONE_NEWTIME)}});
  expect_denied(table);
}

// PID 1 of the box runs as the same user as the program, and is not the program's to look into.
TEST_P(Denial, TheBoxesInit) {
  std::vector<Denied> table = {
      {{"ptrace-init"}, "EPERM", "EPERM", Where::inside, {"ptrace-child"}},
      {{"vm-readv-init"}, "EPERM", "EPERM", Where::inside, {"vm-readv-child"}},
      {{"pidfd-getfd-init"}, "EPERM", "EPERM", Where::outside, {"pidfd-getfd-child"}},
      {{"open-read", "/proc/1/fd"}, "EACCES", "EACCES", Where::inside, {"open-read", "/proc/self/fd"}},
      {{"open-read", "/proc/1/root/etc/passwd"},
       "EACCES",
       "EACCES",
       Where::inside,
       {"open-read", "/proc/self/root/etc/passwd"}},
      {{"open-write", "/proc/1/oom_score_adj"},
       "EACCES",
       "EACCES",
       Where::inside,
       {"open-write", "/proc/self/oom_score_adj"}},
  };
  for (const std::string file : {"environ", "mem", "maps", "auxv"}) {
    table.push_back({{"open-read", "/proc/1/" + file},
                     "EACCES",
                     "EACCES",
                     Where::inside,
                     {"open-read", "/proc/self/" + file}});
  }
  for (const std::string link : {"exe", "root", "cwd", "ns/net"}) {
    table.push_back({{"readlink", "/proc/1/" + link},
                     "EACCES",
                     "EACCES",
                     Where::inside,
                     {"readlink", "/proc/self/" + link}});
  }
  expect_denied(table);
}

// The kernel would ask only for the same user: a limit on processor time would end PID 1, and the box with
// it.
TEST_P(Denial, LimitsAndPrioritiesOfTheBoxesInit) {
  if (!ready()) return;
  const std::vector<std::pair<Args, Args>> rows = {
      {{"limit-init", "0" /* RLIMIT_CPU */}, {"limit-self", "0"}},
      {{"limit-init", "7" /* RLIMIT_NOFILE */}, {"limit-self", "7"}},
      {{"idle-init"}, {"idle-child"}},
      {{"nice-init"}, {"nice-child"}},
      {{"pin-init"}, {"pin-child"}},
  };
  for (const auto& [act, control] : rows) {
    SCOPED_TRACE(join(act, " "));
    EXPECT_EQ(in_box(act), "EPERM\n");
    EXPECT_EQ(in_box(control), "works\n") << "the control";
  }
  // What such a limit would be for. Its control is that of "limit-init 0".
  EXPECT_EQ(in_box({"wear-out-init"}), "EPERM\n");
}

// Debian's kernels keep perf_event_open(2) from users without privileges by a level of their own, above 2.
const char* perf_without_filter() {
  auto level = read_file("/proc/sys/kernel/perf_event_paranoid", 64);
  return level && std::atoi(level->c_str()) > 2 ? "EACCES" : "works";
}

TEST_P(Denial, KernelInterfaces) {
  expect_denied({
      {{"keyctl"}, "EPERM", "works", Where::outside, {"keyctl"}},
      {{"add-key"}, "EPERM", "works", Where::outside, {"add-key"}},
      {{"request-key"}, "EPERM", "ENOKEY", Where::outside, {"request-key"}, "ENOKEY"},
      {{"bpf"}, "EPERM", "EPERM", Where::root, {"bpf"}},
      {{"perf"}, "EPERM", perf_without_filter(), Where::root, {"perf"}},
      {{"io-uring"}, "ENOSYS", "works", Where::outside, {"io-uring"}},
      {{"name-to-handle", "/tmp"}, "EPERM", "works", Where::outside, {"name-to-handle", "/tmp"}},
      {{"open-by-handle", "/tmp"}, "EPERM", "EPERM", Where::root, {"open-by-handle", "/tmp"}},
      {{"personality"}, "EPERM", "works", Where::outside, {"personality"}},
      {{"syslog"}, "EPERM", "EPERM", Where::root, {"syslog"}},
      {{"adjtimex"}, "EPERM", "works", Where::outside, {"adjtimex"}},
      {{"fanotify"}, "EPERM", "EPERM", Where::root, {"fanotify"}},
  });
}

// Kernels are built without these, or have them switched off: then the denial alone can be shown.
TEST_P(Denial, OptionalKernelInterfaces) {
  if (!ready()) return;
  std::string missing;
  const std::vector<std::pair<Args, std::string>> rows = {{{"userfaultfd"}, "ENOSYS"},
                                                          {{"memfd-secret"}, "ENOSYS"},
                                                          {{"read-ldt"}, "EPERM"},
                                                          {{"kcmp"}, "EPERM"}};
  for (const auto& [act, error] : rows) {
    EXPECT_EQ(in_box(act), error + "\n") << act[0];
    const std::string control = running_as_root() ? outside_as_root(act) : outside(act);
    if (control != "works\n") missing += " " + act[0] + " (" + std::string(trim(control)) + ")";
  }
  if (!missing.empty() && !HasFailure()) skip_or_fail("controls", "no control for" + missing);
}

Args socket_of(int family, int type, int protocol) {
  return {"socket", std::to_string(family), std::to_string(type), std::to_string(protocol)};
}

TEST_P(Denial, Sockets) {
  const Args raw = socket_of(AF_INET, SOCK_RAW, 1 /* ICMP */);
  const Args packet = socket_of(AF_PACKET, SOCK_RAW, 0);
  const Args netlink = socket_of(AF_NETLINK, SOCK_RAW, 16 /* generic */);
  expect_denied({
      {packet, "EPERM", "EPERM", Where::own, packet},
      {raw, "EPERM", "EPERM", Where::own, raw},
      {netlink, "EPERM", "works", Where::outside, netlink},
      // What is left of each: routing, the box's own network, pairs.
      {netlink, "EPERM", "works", Where::inside, socket_of(AF_NETLINK, SOCK_RAW, 0)},
      {packet, "EPERM", "EPERM", Where::inside, socket_of(AF_UNIX, SOCK_STREAM, 0)},
      {packet, "EPERM", "EPERM", Where::inside, socket_of(AF_INET, SOCK_STREAM, 0)},
      {packet, "EPERM", "EPERM", Where::inside, {"socketpair", "1", "1"}},
  });
}

// Families that this kernel may not have.
TEST_P(Denial, OptionalSocketFamilies) {
  if (!ready()) return;
  int shown = 0;
  for (const auto& [family, type] : {std::pair{AF_VSOCK, SOCK_STREAM},
                                     {AF_ALG, SOCK_SEQPACKET},
                                     {44 /* XDP */, SOCK_RAW},
                                     {AF_BLUETOOTH, SOCK_RAW}}) {
    const Args act = socket_of(family, type, 0);
    EXPECT_EQ(in_box(act), "EPERM\n") << family;
    Args own = act;
    own.insert(own.begin(), "--own");
    // A kernel that has the family shows the control; one that has not says so, and nothing else.
    const std::string control = outside(own);
    EXPECT_TRUE(control == "works\n" || control == "EAFNOSUPPORT\n") << family << " outside: " << control;
    if (control == "works\n") ++shown;
  }
  EXPECT_GT(shown, 0) << "no family could be shown to work outside";
}

// Pairs too: even where the family knows none, asking for one makes a socket and may load a module.
TEST_P(Denial, SocketPairsOfOtherFamilies) {
  if (!ready()) return;
  for (int family : {AF_VSOCK, AF_ALG, AF_TIPC, AF_PACKET}) {
    EXPECT_EQ(in_box({"socketpair", std::to_string(family), "1"}), "EPERM\n") << family;
  }
  EXPECT_EQ(in_box({"socketpair", std::to_string(AF_UNIX), "1"}), "works\n") << "the control";
}

TEST_P(Denial, AbstractSocketOfTheHost) {
  if (!ready()) return;
  const std::string name = "cofferdam-" + random_hex(8);
  UniqueFd listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  ASSERT_EQ(::bind(listener.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(::listen(listener.get(), 4), 0);
  EXPECT_EQ(in_box({"connect-abstract", name}), "ECONNREFUSED\n");
  EXPECT_EQ(outside({"connect-abstract", name}), "works\n") << "the control";
}

TEST_P(Denial, TerminalInjection) {
  if (!ready()) return;
  for (const char* high : {"0", "1", "0x40000000"}) {
    EXPECT_EQ(in_box({"terminal", "0x5412" /* TIOCSTI */, high}), "EPERM\n") << high;
    EXPECT_EQ(in_box({"terminal", "0x541C" /* TIOCLINUX */, high}), "EPERM\n") << high;
    EXPECT_EQ(in_box({"terminal", "0x5413" /* TIOCGWINSZ */, "0"}), "works\n") << "the terminal is there";
  }
  // The control: the kernel itself would take it, high bits or not. Newer ones may have switched it off
  // (EIO).
  const std::string plain =
      running_as_root() ? outside_as_root({"terminal", "0x5412", "0"}) : outside({"terminal", "0x5412", "0"});
  if (plain == "EIO\n") return skip_or_fail("controls", "TIOCSTI is off on this kernel");
  EXPECT_EQ(plain, "works\n");
  EXPECT_EQ(driver("below", {"terminal", "0x5412", "1"}), "works\n");
}

TEST_P(Denial, FilesOutsideTheWritablePlaces) {
  if (!ready()) return;
  const std::vector<Args> rows = {
      {"EROFS", "create", "/x"},
      {"EROFS", "create", "/usr/x"},
      {"EROFS", "create", "/etc/x"},
      {"EROFS", "create", "/dev/x"},
      {"EROFS", "create", "/opt/agent/x"},
      {"EROFS", "create", "/workspace/.git/x"},
      {"EROFS", "create", "/proc/self/root/usr/x"},
      {"EROFS", "create", "/proc/self/cwd/../usr/x"},
      {"EROFS", "create", "/workspace/../../../../../../etc/x"},
      {"EROFS", "create", "/proc/thread-self/root/workspace/.git/x"},
      {"EROFS", "chmod", "/usr/bin/env", "0777"},
      {"EROFS", "chmod", "/opt/agent/box-probe", "06755"},
      {"EROFS", "chmod", "/", "0777"},
      {"EBUSY", "rename", "/workspace/.git", "/workspace/moved"},
      {"EBUSY", "rmdir", "/workspace/.git"},
      {"EACCES", "open-write", "/proc/sys/kernel/core_pattern"},
      {"ENOENT", "create", "/proc/x"},
      {"ENOENT", "list", "/sys"},
      {"ENOENT", "open-read", "/dev/kmsg"},
      {"ENOENT", "open-read", "/dev/mem"},
      {"ENOENT", "open-read", "/host/etc/passwd"},
      {"ENXIO", "open-read", "/dev/tty"},
  };
  for (const Args& row : rows) {
    const Args act(row.begin() + 1, row.end());
    EXPECT_EQ(in_box(act), row[0] + "\n") << join(act, " ");
    EXPECT_EQ(driver("below", act), row[0] + "\n") << join(act, " ") << " without the filter";
  }
  for (const char* place : {"/workspace/x", "/tmp/x", "/home/agent/x", "/dev/shm/x",
                            "/proc/self/root/workspace/x", "/usr/../workspace/x"}) {
    EXPECT_EQ(in_box({"create", place}), "works\n") << "the control: " << place;
  }
}

TEST_P(Denial, FilesOfTheHost) {
  if (!ready()) return;
  const std::string secret = root() + "/secret";
  ASSERT_TRUE(write_file_atomic(secret, "of the host\n", 0644));
  for (const std::string& path :
       {secret, "/workspace/../../../../.." + secret, "/proc/self/root" + secret,
        "/proc/self/cwd/.." + secret, "/opt/agent/../.." + secret, "/host" + secret}) {
    EXPECT_EQ(in_box({"cat", path}), "ENOENT\n") << path;
  }
  EXPECT_EQ(outside({"cat", secret}), "of the host\nworks\n") << "the control";
}

TEST_P(Denial, Nodes) {
  const std::string here = root() + "/node";
  expect_denied({
      {{"mknod", "/workspace/n", "020000", "1", "3"},
       "EPERM",
       "EACCES",
       Where::root,
       {"mknod", here, "020000", "1", "3"}},
      {{"mknod", "/tmp/n", "020000", "1", "3"},
       "EPERM",
       "EACCES",
       Where::root,
       {"mknod", here, "020000", "1", "3"}},
      {{"mknod", "/workspace/n", "060000", "7", "200"},
       "EPERM",
       "EACCES",
       Where::root,
       {"mknod", here, "060000", "7", "200"}},
      // A whiteout is a device that the kernel lets everybody make. Below the filter there is Landlock.
      {{"mknod", "/workspace/n", "020000", "0", "0"},
       "EPERM",
       "EACCES",
       Where::root,
       {"mknod", here, "020000", "0", "0"}},
      {{"mknod", "/workspace/n", "020000", "0", "0"},
       "EPERM",
       "EACCES",
       Where::inside,
       {"mknod", "/workspace/n", "010000", "0", "0"} /* a fifo */},
  });
}

TEST_P(Denial, HardLinks) {
  if (!ready()) return;
  for (const Args& act : {Args{"link", "/usr/bin/env", "/workspace/x"},
                          {"link", "/etc/passwd", "/workspace/x"},
                          {"link", "/opt/agent/box-probe", "/tmp/x"},
                          {"link", "/opt/agent/box-probe", "/workspace/x"}}) {
    EXPECT_EQ(in_box(act), "EXDEV\n") << join(act, " ");
  }
  const std::string from = agent_dir() + "/box-probe";
  const std::string control = running_as_root() ? outside_as_root({"link", from, agent_dir() + "/x"})
                                                : outside({"link", from, agent_dir() + "/x"});
  EXPECT_EQ(control, "works\n") << "the control";
}

// A set-id program of root's own gives nothing, nor does one that the agent makes.
TEST_P(Denial, SetIdPrograms) {
  if (!ready()) return;
  const std::string nobody_else = "uid 1000 euid 1000 gid 1000 egid 1000 nosuid 1\nworks\n";
  EXPECT_EQ(driver("exec", {"/opt/agent/set-id-probe", "ids"}), nobody_else);
  for (const char* path : {"/workspace/x", "/tmp/x"}) {
    EXPECT_EQ(in_box({"set-id-copy", path}), "mode 6755\n" + nobody_else) << path;
  }
  if (!running_as_root() || !ids().has_value()) return;
  SpawnOptions options;
  options.program = agent_dir() + "/set-id-probe";
  options.argv = {"set-id-probe", "ids"};
  options.run_as = ids();
  auto control = run_capture(options, "", {});
  ASSERT_TRUE(control);
  EXPECT_NE(control->out.find("euid 0 "), std::string::npos) << "the control: " << control->out;
}

TEST_P(Denial, CoreDumps) {
  if (!ready()) return;
  EXPECT_EQ(in_box({"crash"}), "signal 6, core not dumped\nworks\n");
  EXPECT_EQ(in_box({"raise-core-limit"}), "EPERM\n");
  const std::string control = running_as_root() ? outside_as_root({"raise-core-limit"}) : "needs root";
  if (control == "needs root") return skip_or_fail("controls", "the hard limit may be 0 here");
  EXPECT_EQ(control, "works\n");
}

COFFERDAM_FOR_BOTH_USERS(Denial);

}  // namespace
}  // namespace cofferdam::test
