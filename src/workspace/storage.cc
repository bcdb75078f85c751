#include "workspace/storage.h"

#include <fcntl.h>
#include <linux/nsfs.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "base/file.h"
#include "base/io.h"
#include "base/text.h"
#include "init/client.h"
#include "workspace/host_mount.h"

namespace cofferdam::workspace {
namespace {

constexpr int kKeeperBoundMs = 30'000;

// What the host gives to a keeper. As root everything is a mount or a file of the supervisor's, by
// descriptor.
class HostSide {
 public:
  explicit HostSide(const StorageOptions& options) : by_fd_(options.run_as.has_value()) {}

  Result<Source> folder(const std::string& path, bool read_only) {
    if (path.empty()) return Source{};
    if (!by_fd_) return Source{path};
    TRY(UniqueFd mount, detached_mount(path, read_only));
    return Source{"", own(std::move(mount))};
  }
  int own(UniqueFd fd) {
    owned_.push_back(std::move(fd));
    return borrow(owned_.back().get());
  }
  // The number that the keeper will know it by.
  int borrow(int fd) {
    fds_.push_back({fd, plan::kFirstExtraFd + static_cast<int>(fds_.size())});
    return fds_.back().target;
  }
  const std::vector<FdMapping>& fds() const { return fds_; }

 private:
  bool by_fd_;
  std::vector<UniqueFd> owned_;
  std::vector<FdMapping> fds_;
};

Result<KeeperInput> gather(const StorageOptions& options, HostSide* host) {
  KeeperInput input;
  input.work_bytes = options.work_bytes;
  input.work_inodes = options.work_inodes;
  input.metadata = options.metadata;
  input.form = options.form;
  input.linger = options.linger;
  TRY(input.objects, host->folder(options.objects_dir, true));
  TRY(input.image, host->folder(options.image_dir, true));
  const bool written = options.form == TreeForm::making || options.form == TreeForm::emptying;
  TRY(input.tree, host->folder(options.tree_dir, !written));
  TRY(input.disk, host->folder(options.disk_dir, false));
  if (options.disk_fd >= 0) input.disk.fd = host->borrow(options.disk_fd);
  for (const int held : options.held_fds) host->borrow(held);
  if (!options.index_path.empty()) {
    TRY(UniqueFd index, open_file(options.index_path, O_RDONLY | O_NOFOLLOW));
    struct stat info {};
    if (::fstat(index.get(), &info) != 0) return sys_error("stat " + options.index_path, errno);
    input.index_bytes = static_cast<std::uint64_t>(info.st_size);
    input.index_fd = host->own(std::move(index));
  }
  return input;
}

// Whether a process lives in the user namespace `own` or in one nested in it. What has ended meanwhile, or is
// not ours to look at, does not.
bool is_in(const std::string& pid, const struct stat& own) {
  auto opened = open_file("/proc/" + pid + "/ns/user", O_RDONLY);
  if (!opened) return false;
  UniqueFd ns = *std::move(opened);
  constexpr int kMaxNested = 32;  // the kernel's own bound: user_namespaces(7)
  for (int level = 0; level <= kMaxNested; ++level) {
    struct stat info {};
    if (::fstat(ns.get(), &info) != 0) return false;
    if (info.st_ino == own.st_ino && info.st_dev == own.st_dev) return true;
    const int parent = ::ioctl(ns.get(), NS_GET_PARENT);
    if (parent < 0) return false;  // EPERM: the next one is above our own
    ns = UniqueFd(parent);
  }
  return false;
}

}  // namespace

Result<Storage> Storage::create(const StorageOptions& options) {
  init_client::InitOptions starting;
  starting.program = options.init;
  starting.run_as = options.run_as;
  // It ends by its own watch over the socket, and not by a death signal, which would leave nothing to
  // recover.
  starting.die_with_parent = false;
  HostSide host(options);
  TRY(const KeeperInput input, gather(options, &host));
  starting.fds = host.fds();
  TRY(init_client::InitProcess process, init_client::start_init(starting, plan_keeper(input)));
  TRY(bool spoke, wait_readable(process.control.get(), kKeeperBoundMs));
  if (!spoke) return make_error(Code::timeout, "the storage keeper did not start in time");
  TRY(init_client::InitMessage message, init_client::receive(process.control.get()));
  if (message.kind == plan::from_init::failed) return init_client::setup_error("storage", message);
  if (message.kind != plan::from_init::ready)
    return make_error(Code::protocol, "the storage keeper ended early");
  Storage storage;
  storage.form_ = options.form;
  if (!message.fields.empty() && !message.fields[0].empty()) {
    storage.form_ = TreeForm::checkout;
    storage.problem_ = printable(message.fields[0], 300);
  }
  TRY(storage.id_, identify(process.child.pid()));
  storage.keeper_ = std::move(process.child);
  storage.control_ = std::move(process.control);
  TRY_VOID(storage.open_namespaces());
  return storage;
}

Result<Storage> Storage::take_over(const ProcessId& keeper) {
  const auto gone = [] { return make_error(Code::not_found, "the storage is gone: its keeper has ended"); };
  auto pidfd = open_process(keeper);
  if (!pidfd.has_value()) return gone();
  Storage storage;
  storage.id_ = keeper;
  storage.pidfd_ = *std::move(pidfd);
  Status opened = storage.open_namespaces();
  // Only now is it sure that the namespaces were the keeper's: it could have ended between the two.
  if (!open_process(keeper).has_value()) return gone();
  TRY_VOID(opened);
  // A record that names a process of ours, whoever wrote it, must not make every process a part of a box.
  struct stat own {};
  struct stat found {};
  if (::stat("/proc/self/ns/user", &own) != 0 || ::fstat(storage.userns_.get(), &found) != 0) {
    return sys_error("stat a user namespace", errno);
  }
  if (own.st_ino == found.st_ino && own.st_dev == found.st_dev) return gone();
  return storage;
}

Status Storage::open_namespaces() {
  const std::string ns = "/proc/" + std::to_string(id_.pid) + "/ns/";
  TRY(userns_, open_file(ns + "user", O_RDONLY));
  TRY(mntns_, open_file(ns + "mnt", O_RDONLY));
  return {};
}

Status Storage::keep() {
  return init_client::send_order(control_.get(), plan::to_init::keep);
}

Result<std::vector<pid_t>> Storage::processes() const {
  struct stat own {};
  if (::fstat(userns_.get(), &own) != 0) return sys_error("stat the storage's user namespace", errno);
  std::vector<pid_t> found;
  TRY(const std::vector<std::string> names, list_dir("/proc"));
  for (const std::string& name : names) {
    const auto pid = init_client::parse_number(name);
    if (!pid.has_value() || static_cast<pid_t>(*pid) == id_.pid) continue;
    if (is_in(name, own)) found.push_back(static_cast<pid_t>(*pid));
  }
  return found;
}

std::string Storage::describe() const {
  return "storage, keeper pid " + std::to_string(id_.pid);
}

Status Storage::kill_processes() const {
  struct stat own {};
  if (::fstat(userns_.get(), &own) != 0) return sys_error("stat the storage's user namespace", errno);
  TRY(const std::vector<pid_t> found, processes());
  for (pid_t pid : found) {
    // The descriptor first: it keeps meaning the process that is then looked at.
    const UniqueFd process(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
    if (process.valid() && is_in(std::to_string(pid), own)) {
      ::syscall(SYS_pidfd_send_signal, process.get(), SIGKILL, nullptr, 0);
    }
  }
  return {};
}

void Storage::abandon() {
  keeper_.detach();
  control_.reset();
  pidfd_.reset();
}

Status Storage::release() {
  userns_.reset();
  mntns_.reset();
  if (pidfd_.valid()) {
    ::syscall(SYS_pidfd_send_signal, pidfd_.get(), SIGKILL, nullptr, 0);
    TRY(bool ended, wait_readable(pidfd_.get(), kKeeperBoundMs));
    pidfd_.reset();
    if (!ended) return make_error(Code::timeout, "the storage keeper did not end");
  }
  if (!keeper_.running()) return {};
  // A keeper that has ended already has given everything back.
  (void)init_client::send_order(control_.get(), plan::to_init::release).has_value();
  auto ended = keeper_.wait(std::chrono::milliseconds(kKeeperBoundMs));
  if (!ended) return ended.error().with("storage keeper");
  return {};
}

}  // namespace cofferdam::workspace
