#include "init/probes.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <set>
#include <vector>

#include "init/landlock.h"
#include "init/protocol.h"
#include "init/restrict.h"
#include "init/sys.h"

namespace cofferdam::init {
namespace {

// What one probe found. The detail is for people and never holds anything of the host.
struct Finding {
  bool enforced = false;
  std::string detail;
};

std::string error_text(int error) {
  return std::strerror(error);
}

std::string slurp(const char* path) {
  int fd = ::open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return {};
  std::string out(16384, '\0');
  ssize_t n = ::read(fd, out.data(), out.size());
  ::close(fd);
  out.resize(n > 0 ? static_cast<std::size_t>(n) : 0);
  return out;
}

// The value of "Name:\tvalue" in /proc/self/status.
std::string status_field(const std::string& status, const std::string& name) {
  std::size_t at = status.find("\n" + name + ":");
  if (at == std::string::npos) return {};
  std::size_t begin = status.find_first_not_of(" \t", at + name.size() + 2);
  return status.substr(begin, status.find('\n', begin) - begin);
}

Finding identity(const plan::Plan&) {
  uid_t r = 0, e = 0, s = 0;
  gid_t gr = 0, ge = 0, gs = 0;
  if (::getresuid(&r, &e, &s) != 0 || ::getresgid(&gr, &ge, &gs) != 0) return {false, "cannot read ids"};
  const bool uid = r == plan::kInsideId && e == r && s == r;
  const bool gid = gr == plan::kInsideId && ge == gr && gs == gr;
  return {uid && gid, "uid " + number(e) + ", gid " + number(ge)};
}

Finding groups(const plan::Plan&) {
  int count = ::getgroups(0, nullptr);
  return {count == 0, number(static_cast<unsigned>(std::max(count, 0))) + " supplementary groups"};
}

Finding capabilities(const plan::Plan&) {
  std::string status = slurp("/proc/self/status");
  for (const char* name : {"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"}) {
    std::string value = status_field(status, name);
    if (value.empty() || value.find_first_not_of('0') != std::string::npos)
      return {false, name + (" " + value)};
  }
  return {true, "all five sets are empty"};
}

Finding no_new_privs(const plan::Plan&) {
  std::string value = status_field(slurp("/proc/self/status"), "NoNewPrivs");
  return {value == "1", "NoNewPrivs " + value};
}

// One forbidden call: it must fail, and by the filter's errno.
struct Call {
  const char* name;
  long number;
  long arguments[5];
  int expected;
};

Finding seccomp(const plan::Plan&) {
  if (status_field(slurp("/proc/self/status"), "Seccomp") != "2") return {false, "no filter is loaded"};
  const Call calls[] = {
      {"unshare", SYS_unshare, {CLONE_NEWUSER}, EPERM},
      {"mount", SYS_mount, {0, 0, 0, 0, 0}, EPERM},
      {"setns", SYS_setns, {-1, 0}, EPERM},
      {"keyctl", SYS_keyctl, {0, 0}, EPERM},
      {"bpf", SYS_bpf, {0, 0, 0}, EPERM},
      {"perf_event_open", SYS_perf_event_open, {0, 0, -1, -1, 0}, EPERM},
      {"userfaultfd", SYS_userfaultfd, {0}, ENOSYS},
      {"io_uring_setup", SYS_io_uring_setup, {1, 0}, ENOSYS},
      {"clone3", SYS_clone3, {0, 0}, ENOSYS},
      {"fsopen", SYS_fsopen, {0, 0}, ENOSYS},
      {"open_by_handle_at", SYS_open_by_handle_at, {-1, 0, 0}, EPERM},
  };
  for (const Call& call : calls) {
    long result = ::syscall(call.number, call.arguments[0], call.arguments[1], call.arguments[2],
                            call.arguments[3], call.arguments[4]);
    if (result != -1 || errno != call.expected)
      return {false, std::string(call.name) + " was not stopped by the filter"};
  }
  return {true, number(sizeof calls / sizeof calls[0]) + " forbidden calls failed"};
}

Finding socket_families(const plan::Plan&) {
  for (int family : {40 /* VSOCK */, 38 /* ALG */, 17 /* PACKET */, 44 /* XDP */, 31 /* BLUETOOTH */}) {
    int fd = ::socket(family, SOCK_DGRAM, 0);
    if (fd >= 0 || errno != EPERM) return {false, "socket family " + number(static_cast<unsigned>(family))};
  }
  int fd = ::socket(AF_UNIX, SOCK_STREAM, 0);  // the control: the allowed kind works
  if (fd < 0) return {false, "unix sockets do not work"};
  ::close(fd);
  return {true, "VSOCK, ALG, PACKET, XDP and BLUETOOTH refused"};
}

Finding no_user_namespaces(const plan::Plan&) {
  std::string value = slurp("/proc/sys/user/max_user_namespaces");
  return {value == "0\n", "max_user_namespaces " + value.substr(0, value.find('\n'))};
}

// A name that nobody can have taken before: what the agent left, or the repository tracks, must not look like
// a refusal.
std::string unused_name() {
  unsigned char random[16] = {};
  check(::getrandom(random, sizeof random, 0) == sizeof random, "getrandom");
  std::string name = "/.cofferdam-probe-";
  for (unsigned char byte : random) {
    name.push_back("0123456789abcdef"[byte >> 4U]);
    name.push_back("0123456789abcdef"[byte & 15U]);
  }
  return name;
}

bool can_create(const std::string& folder, int* error) {
  std::string path = folder + unused_name();
  int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  *error = errno;
  if (fd < 0) return false;
  ::close(fd);
  ::unlink(path.c_str());
  return true;
}

Finding access_is(const char* path, std::uint8_t wanted) {
  struct stat info {};
  const bool there = ::stat(path, &info) == 0;
  if (wanted == 0) return {!there, there ? "present" : "absent"};
  int error = 0;
  const bool writable = there && can_create(path, &error);
  if (wanted == 2) return {writable, writable ? "writable" : error_text(error)};
  return {there && !writable && error == EROFS, writable ? "writable" : "writing: " + error_text(error)};
}

Finding root_read_only(const plan::Plan&) {
  for (const char* path : {"/", "/usr", "/etc", "/dev", "/home"}) {
    int error = 0;
    if (can_create(path, &error)) return {false, std::string(path) + " is writable"};
    if (error != EROFS) return {false, std::string(path) + ": " + error_text(error)};
  }
  return {true, "writing: Read-only file system"};
}

Finding work_tree(const plan::Plan& plan) {
  return access_is("/workspace", plan.expected.work);
}
Finding metadata(const plan::Plan& plan) {
  return access_is("/workspace/.git", plan.expected.metadata);
}
Finding output(const plan::Plan& plan) {
  return access_is("/out", plan.expected.output);
}

bool bounded(const char* path, std::uint64_t bytes, std::uint64_t inodes, std::string* detail) {
  struct statvfs info {};
  if (::statvfs(path, &info) != 0) {
    *detail = std::string(path) + ": " + error_text(errno);
    return false;
  }
  const std::uint64_t size = info.f_blocks * info.f_frsize;
  *detail = std::string(path) + " " + number(size) + " bytes, " + number(info.f_files) + " inodes";
  // tmpfs rounds up to whole pages.
  return size != 0 && size <= bytes + 4096 && info.f_files != 0 && info.f_files <= inodes;
}

Finding storage_bound(const plan::Plan& plan) {
  Finding finding{true, "no writable storage in this box"};
  if (plan.expected.work_bytes != 0) {
    finding.enforced =
        bounded("/workspace", plan.expected.work_bytes, plan.expected.work_inodes, &finding.detail);
  }
  return finding;
}

Finding scratch_bound(const plan::Plan& plan) {
  Finding finding{true, {}};
  for (const char* path : {"/tmp", "/home/agent", "/dev/shm"}) {
    int error = 0;
    if (!can_create(path, &error)) return {false, std::string(path) + ": " + error_text(error)};
    if (!bounded(path, plan.expected.scratch_bytes, plan.expected.scratch_inodes, &finding.detail)) {
      return {false, finding.detail};
    }
  }
  return finding;
}

bool unreachable(int family, const sockaddr* address, socklen_t size) {
  int fd = ::socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return errno == EAFNOSUPPORT;
  int result = ::connect(fd, address, size);
  int error = errno;
  ::close(fd);
  return result != 0 && (error == ENETUNREACH || error == EADDRNOTAVAIL);
}

// A datagram socket's connect(2) only asks the routing table: nothing is sent.
Finding network(const plan::Plan&) {
  sockaddr_in v4{};
  v4.sin_family = AF_INET;
  v4.sin_port = htons(53);
  ::inet_pton(AF_INET, "192.0.2.1", &v4.sin_addr);  // RFC 5737
  sockaddr_in6 v6{};
  v6.sin6_family = AF_INET6;
  v6.sin6_port = htons(53);
  ::inet_pton(AF_INET6, "2001:db8::1", &v6.sin6_addr);  // RFC 3849
  if (!unreachable(AF_INET, reinterpret_cast<sockaddr*>(&v4), sizeof v4))
    return {false, "an IPv4 route exists"};  // NOLINT
  if (!unreachable(AF_INET6, reinterpret_cast<sockaddr*>(&v6), sizeof v6))
    return {false, "an IPv6 route exists"};  // NOLINT
  std::string devices = slurp("/proc/net/dev");
  std::size_t interfaces = static_cast<std::size_t>(std::count(devices.begin(), devices.end(), ':'));
  const bool only_lo = interfaces == 1 && devices.find("lo:") != std::string::npos;
  return {only_lo, only_lo ? "only lo, no route" : number(interfaces) + " interfaces"};
}

std::set<std::string> names_in(const char* path) {
  std::set<std::string> names;
  DIR* dir = ::opendir(path);
  if (dir == nullptr) return names;
  while (const dirent* entry = ::readdir(dir)) names.insert(entry->d_name);
  ::closedir(dir);
  names.erase(".");
  names.erase("..");
  return names;
}

Finding process_tree(const plan::Plan&) {
  std::size_t processes = 0;
  for (const std::string& name : names_in("/proc")) {
    if (name.find_first_not_of("0123456789") == std::string::npos) ++processes;
  }
  // PID 1 and this probe; more would be somebody else's.
  return {processes == 2 && ::getppid() == 1, number(processes) + " processes"};
}

Finding no_terminal(const plan::Plan&) {
  int fd = ::open("/dev/tty", O_RDWR | O_CLOEXEC);
  if (fd >= 0) return {false, "there is a controlling terminal"};
  return {true, "/dev/tty: " + error_text(errno)};
}

Finding descriptors(const plan::Plan& plan) {
  ::close(plan::kControlFd);
  std::string extra;
  for (const std::string& name : names_in("/proc/self/fd")) {
    int fd = std::atoi(name.c_str());
    const bool standard = fd <= 2;
    const bool parked =
        fd >= plan::kFirstExtraFd && fd < plan::kFirstExtraFd + static_cast<int>(plan.program_fds.size());
    if (standard || parked || ::fcntl(fd, F_GETFD) < 0) continue;  // the last: the listing's own
    if ((::fcntl(fd, F_GETFD) & FD_CLOEXEC) == 0) extra += " " + name;
  }
  return {extra.empty(), extra.empty() ? "only declared ones" : "open:" + extra};
}

Finding kernel_settings(const plan::Plan&) {
  for (const char* path : {"/proc/sys/kernel/core_pattern", "/proc/sys/vm/overcommit_memory",
                           "/proc/sys/user/max_user_namespaces", "/proc/sysrq-trigger"}) {
    int fd = ::open(path, O_WRONLY | O_CLOEXEC);
    if (fd >= 0) return {false, std::string(path) + " can be opened for writing"};
  }
  if (!names_in("/sys").empty()) return {false, "/sys is visible"};
  return {true, "core_pattern cannot be opened for writing; no /sys"};
}

// The root holds what the plan put there and nothing else.
Finding host_paths(const plan::Plan& plan) {
  std::set<std::string> allowed;
  for (const plan::Op& op : plan.ops) {
    if (op.b == "/host") continue;  // the host's tree, in a box of the gate's that goes without this
    std::size_t end = op.b.find('/', 1);
    allowed.insert(op.b.substr(1, end == std::string::npos ? end : end - 1));
  }
  for (const std::string& name : names_in("/")) {
    if (allowed.count(name) == 0) return {false, "unexpected /" + name};
  }
  for (const std::string& name : names_in("/home")) {
    if (name != "agent") return {false, "unexpected /home/" + name};
  }
  return {true, "only planned paths"};
}

Finding init_opaque(const plan::Plan&) {
  char buffer[64];
  if (::readlink("/proc/1/exe", buffer, sizeof buffer) >= 0) return {false, "PID 1's program can be seen"};
  int fd = ::open("/proc/1/mem", O_RDWR | O_CLOEXEC);
  if (fd >= 0) return {false, "PID 1's memory can be opened"};
  return {true, "/proc/1: " + error_text(errno)};
}

// What the rules refuse and the mounts allow: both files are there for everybody to write to. PID 1 has our
// uid, so without the scope it would take a signal.
Finding landlock(const plan::Plan& plan) {
  const unsigned abi = landlock_abi();
  if (abi == 0) return {false, "this kernel has no Landlock"};
  if (abi < 2) return {false, "ABI 1 refuses every rename between folders"};
  if (!has_layer(plan, plan::Layer::landlock)) return {false, "left out"};
  const int read = ::open("/dev/urandom", O_RDONLY | O_CLOEXEC);
  if (read < 0) return {false, "/dev/urandom cannot be read: " + error_text(errno)};
  ::close(read);
  const int write = ::open("/dev/urandom", O_WRONLY | O_CLOEXEC);
  if (write >= 0) return {false, "/dev/urandom can be opened for writing"};
  if (errno != EACCES) return {false, "/dev/urandom: " + error_text(errno)};
  const std::string version = "ABI " + number(abi);
  if (abi < 6) return {true, version + ": files; no scope for signals and abstract sockets"};
  if (::kill(1, 0) == 0 || errno != EPERM) return {false, "PID 1 can be signalled"};
  return {true, version + ": files, signals and abstract sockets"};
}

// Neither as a program nor, by the loader, as its code; the interpreter that the file names does not exist,
// so that nothing is executed where it is possible.
std::string executable_in(const std::string& folder) {
  const std::string path = folder + unused_name();
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0700);
  if (fd < 0) return folder + ": " + error_text(errno);
  const std::string text = "#!/.cofferdam-no-interpreter\n";
  const bool written = ::write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  void* const code = ::mmap(nullptr, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
  const bool mapped = code != MAP_FAILED || errno != EPERM;
  ::close(fd);
  char* const argv[] = {const_cast<char*>(path.c_str()), nullptr};  // NOLINT
  ::execv(path.c_str(), argv);
  const bool executed = errno != EACCES;
  ::unlink(path.c_str());
  if (!written) return folder + " cannot be written";
  if (mapped) return "a file in " + folder + " can be mapped as code";
  return executed ? "a file in " + folder + " can be executed" : "";
}

// Only asked for with shell "none".
Finding execution(const plan::Plan& plan) {
  for (const char* path : {"/bin/sh", "/bin/bash", "/usr/bin/sh", "/usr/bin/bash"}) {
    if (::access(path, F_OK) == 0) return {false, std::string(path) + " is there"};
  }
  std::vector<std::string> folders = {"/tmp", "/home/agent", "/dev/shm"};
  if (plan.expected.work == 2) folders.emplace_back("/workspace");
  for (const std::string& folder : folders) {
    if (std::string found = executable_in(folder); !found.empty()) return {false, found};
  }
  const int memory = ::memfd_create("probe", 0);
  if (memory >= 0) return {false, "memory files can hold programs"};
  if (errno != EACCES) return {false, "memfd_create: " + error_text(errno)};
  return {true, "no shell; no program and no code in writable places or in memory files"};
}

struct Probe {
  const char* name;
  Finding (*run)(const plan::Plan&);
};

// Names are those of the control table (contract/controls.cc). `descriptors` is last: it closes the socket.
constexpr Probe kProbes[] = {
    {"identity", identity},
    {"supplementary-groups", groups},
    {"capabilities", capabilities},
    {"no-new-privs", no_new_privs},
    {"seccomp", seccomp},
    {"socket-families", socket_families},
    {"no-user-namespaces", no_user_namespaces},
    {"root-read-only", root_read_only},
    {"work-tree", work_tree},
    {"git-metadata", metadata},
    {"output", output},
    {"storage-bound", storage_bound},
    {"scratch-bound", scratch_bound},
    {"network", network},
    {"process-tree", process_tree},
    {"no-terminal", no_terminal},
    {"kernel-settings", kernel_settings},
    {"host-paths", host_paths},
    {"init-opaque", init_opaque},
    {"landlock", landlock},
    {"execution", execution},
    {"descriptors", descriptors},
};

[[noreturn]] void probe_child(const plan::Plan& plan, int landlock, int report) {
  ::prctl(PR_SET_DUMPABLE, 1);  // as an executed program would be
  start_session(plan);
  if (!enter_landlock(landlock)) ::_exit(1);  // no answer at all
  for (const Probe& probe : kProbes) {
    if (probe.run == execution && plan.shell != 0) continue;
    Finding finding = probe.run(plan);
    std::string line = fields(probe.name, finding.enforced ? "1" : "0", finding.detail.substr(0, 256));
    line.push_back('\n');
    ssize_t ignored = ::write(report, line.data(), line.size());
    (void)ignored;
  }
  ::_exit(0);
}

}  // namespace

void run_probes(const plan::Plan& plan, int landlock) {
  int report[2];
  check(::pipe2(report, O_CLOEXEC) == 0, "pipe for the probes");
  pid_t pid = ::fork();
  check(pid >= 0, "fork for the probes");
  if (pid == 0) probe_child(plan, landlock, report[1]);
  ::close(report[1]);
  std::string text;
  char buffer[4096];
  while (true) {
    ssize_t n = ::read(report[0], buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    text.append(buffer, static_cast<std::size_t>(n));
  }
  ::close(report[0]);
  while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
  }
  for (std::size_t at = 0, end = 0; (end = text.find('\n', at)) != std::string::npos; at = end + 1) {
    send_text(plan::from_init::probe, std::string_view(text).substr(at, end - at));
  }
}

}  // namespace cofferdam::init
