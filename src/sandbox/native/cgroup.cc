#include "sandbox/native/cgroup.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/file.h"
#include "base/text.h"
#include "sandbox/native/cgroup_files.h"
#include "sandbox/native/cgroup_tree.h"

namespace cofferdam::sandbox {
namespace {

using SteadyClock = std::chrono::steady_clock;
using contract::Access;

constexpr std::chrono::seconds kFreezeBound{2};
constexpr std::chrono::seconds kKillBound{5};
constexpr std::chrono::seconds kRemoveBound{5};
constexpr std::uint64_t kScratchMounts = 3;  // HOME, /tmp, /dev/shm
constexpr std::uint64_t kWayOutShares = 2;   // of a work tree's size (workspace/storage.cc)
constexpr int kMaxTries = 20;

std::vector<std::string> below(const std::vector<std::string>& folders, const std::string& name) {
  std::vector<std::string> paths;
  paths.reserve(folders.size());
  for (const std::string& folder : folders) paths.push_back(fmt::format("{}/{}", folder, name));
  return paths;
}

// A number may have come to mean another process since the list was made: first the descriptor, then whether
// the list still has it.
void kill_running(const std::string& folder, pid_t spared) {
  for (const pid_t pid : processes_of(folder)) {
    if (pid == spared) continue;
    const UniqueFd process(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
    const std::vector<pid_t> now = processes_of(folder);
    if (!process.valid() || std::find(now.begin(), now.end(), pid) == now.end()) continue;
    ::syscall(SYS_pidfd_send_signal, process.get(), SIGKILL, nullptr, 0);
  }
}

bool only_spared(const std::string& folder, pid_t spared) {
  const std::vector<pid_t> left = processes_of(folder);
  return std::all_of(left.begin(), left.end(), [spared](pid_t pid) { return pid == spared; });
}

void kill_folders(const CgroupPlace& place, const std::vector<std::string>& folders, pid_t spared) {
  const std::size_t freezer = tree_of(place, "freezer").value_or(0);
  const std::string& folder = folders[freezer];
  const bool frozen = freeze(folder, place.version, kFreezeBound);
  // In one step, and `spared` with the rest: the frozen of version 2 die without being thawed.
  if (place.version == 2 && write_setting(folder + "/cgroup.kill", "1")) return;
  if (frozen) {
    // Nobody in it can end or fork now: the list is complete, and every number means what it says.
    for (const pid_t pid : processes_of(folder)) {
      if (pid != spared) ::kill(pid, SIGKILL);
    }
  }
  thaw(folder, place.version);
  if (frozen) return;
  for (const auto end = SteadyClock::now() + kKillBound;
       !only_spared(folder, spared) && SteadyClock::now() < end;) {
    kill_running(folder, spared);
    ::poll(nullptr, 0, 1);  // between two rounds
  }
}

Status remove_folders(const std::vector<std::string>& folders) {
  // Memory's last: as long as it is there, a sweep finds the others by its name.
  for (auto folder = folders.rbegin(); folder != folders.rend(); ++folder) {
    TRY_VOID(remove_group(*folder, kRemoveBound));
  }
  return {};
}

// Where a process with one thread writes "0" to be in the group. The kernel stops all forks and exits before
// it moves a whole process (cgroup_threadgroup_rwsem), and waits a grace period of RCU for that, 10 to 20 ms
// on a host where nobody has just done the same. A thread that moves itself it lets through at once
// (cgroup_procs_write_start() of kernel/cgroup/cgroup.c). In version 2 threads cannot leave for another
// domain, but a process can be made in its group: SpawnOptions::group_fd.
const char* entry_file(int version) {
  return version == 2 ? "/cgroup.procs" : "/tasks";
}

bool lock_folder(int fd) {
  return ::flock(fd, LOCK_EX | LOCK_NB) == 0;
}

Status bound_memory(const std::string& folder, int version, std::uint64_t bytes) {
  const std::string text = std::to_string(bytes);
  if (version == 2) {
    TRY_VOID(write_setting(folder + "/memory.max", text));
    // Not there where the kernel does not count swap.
    if (exists(folder + "/memory.swap.max")) TRY_VOID(write_setting(folder + "/memory.swap.max", "0"));
    return {};
  }
  TRY_VOID(write_setting(folder + "/memory.limit_in_bytes", text));
  if (!exists(folder + "/memory.memsw.limit_in_bytes")) return {};
  // Of both together: with the same bound nothing is left for swap.
  return write_setting(folder + "/memory.memsw.limit_in_bytes", text);
}

}  // namespace

GroupBounds bounds_of(const contract::Profile& profile) {
  GroupBounds bounds;
  bounds.pids = (profile.pids != 0 ? profile.pids : kOwnBoxPids) + kPidsOfInit;
  bounds.memory_bytes = profile.memory_bytes != 0 ? profile.memory_bytes : kOwnBoxBytes;
  bounds.memory_bytes += kScratchMounts * profile.scratch_bytes;
  if (profile.work == Access::read_write && profile.work_in_memory) bounds.memory_bytes += profile.work_bytes;
  if (profile.output == Access::read_write) bounds.memory_bytes += kWayOutShares * profile.work_bytes;
  return bounds;
}

const CgroupPlace& BoxGroup::place() const {
  return attempt_->place();
}

std::vector<int> BoxGroup::entries() const {
  std::vector<int> fds;
  fds.reserve(entries_.size());
  for (const UniqueFd& entry : entries_) fds.push_back(entry.get());
  return fds;
}

GroupFacts BoxGroup::facts() const {
  GroupFacts facts;
  const bool two = place().version == 2;
  const std::string& memory = folders_[tree_of(place(), "memory").value_or(0)];
  const std::string& pids = folders_[tree_of(place(), "pids").value_or(0)];
  facts.peak_bytes = read_number(memory + (two ? "/memory.peak" : "/memory.max_usage_in_bytes")).value_or(0);
  facts.oom_kills = read_count(memory + (two ? "/memory.events" : "/memory.oom_control"), "oom_kill");
  facts.peak_pids = read_number(pids + "/pids.peak").value_or(0);
  facts.pids_refused = read_count(pids + "/pids.events", "max");
  return facts;
}

void BoxGroup::kill(pid_t spared) const {
  kill_folders(place(), folders_, spared);
}

bool BoxGroup::empty() const {
  return std::all_of(folders_.begin(), folders_.end(),
                     [](const std::string& folder) { return processes_of(folder).empty(); });
}

Status BoxGroup::wait_empty(std::chrono::milliseconds limit) const {
  const auto end = SteadyClock::now() + limit;
  while (!empty()) {
    if (SteadyClock::now() > end) return make_error(Code::timeout, folders_.front() + " has processes");
    ::poll(nullptr, 0, 1);  // between two looks
  }
  return {};
}

BoxGroup::~BoxGroup() {
  if (!attempt_ || folders_.empty()) return;
  if (!empty()) kill(0);
  // What stays is removed by the next sweep.
  (void)remove_folders(folders_).has_value();
}

AttemptGroup::AttemptGroup(CgroupPlace place, const std::string& name)
    : place_(std::move(place)), name_(name + "-" + random_hex(4)) {}

Status AttemptGroup::make_once(bool* again) {
  TRY_VOID(make_base(place_));
  std::vector<std::string> folders;
  for (const CgroupTree& tree : place_.trees) {
    const std::string folder = tree.folder + "/" + name_;
    if (::mkdir(folder.c_str(), 0755) != 0) {
      const int error = errno;
      for (const std::string& made : folders) ::rmdir(made.c_str());
      // The base went with somebody's last group, or a sweep has not yet removed what it took from us.
      *again = error == EEXIST || (error == ENOENT && place_.own_levels != 0);
      return sys_error("cannot make " + folder, error);
    }
    folders.push_back(folder);
    if (folders.size() > 1) continue;
    // A sweep that was faster has it, and removes it.
    auto opened = open_file(folder, O_RDONLY | O_DIRECTORY);
    *again = !opened || !lock_folder(opened->get()) || !is_still_at(opened->get(), folder);
    if (opened) lock_ = *std::move(opened);
    if (*again) return make_error(Code::conflict, folder + " was taken away");
  }
  folders_ = std::move(folders);
  if (place_.version == 2) TRY_VOID(hand_down(folders_.front()));
  return {};
}

Status AttemptGroup::make() {
  for (int tries = 0; folders_.empty(); ++tries) {
    bool again = false;
    Status made = make_once(&again);
    if (!made && (!again || tries > kMaxTries)) return made;
    if (!made) ::poll(nullptr, 0, 1);  // between two tries
  }
  return {};
}

Result<BoxGroup> AttemptGroup::make_box(const std::string& kind, const GroupBounds& bounds) {
  TRY_VOID(make());
  BoxGroup group(shared_from_this(), bounds);
  for (const std::string& folder : below(folders_, fmt::format("{}-{}", kind, ++boxes_))) {
    if (::mkdir(folder.c_str(), 0755) != 0) return sys_error("cannot make " + folder, errno);
    group.folders_.push_back(folder);
    TRY(UniqueFd entry, open_file(folder + entry_file(place_.version), O_WRONLY));
    group.entries_.push_back(std::move(entry));
    if (place_.version != 2) continue;
    TRY(group.folder_fd_, open_file(folder, O_RDONLY | O_DIRECTORY));
  }
  const auto at = [&](const char* controller) {
    return group.folders_[tree_of(place_, controller).value_or(0)];
  };
  TRY_VOID(bound_memory(at("memory"), place_.version, bounds.memory_bytes));
  TRY_VOID(write_setting(at("pids") + "/pids.max", std::to_string(bounds.pids)));
  return group;
}

AttemptGroup::~AttemptGroup() {
  if (folders_.empty()) return;
  (void)remove_folders(folders_).has_value();
  lock_.reset();
  remove_base(place_);
}

Status sweep_cgroups(const CgroupPlace& place) {
  if (!place.usable() || !is_directory(place.trees.front().folder)) return {};
  auto names = list_dir(place.trees.front().folder);
  if (!names) return {};  // gone since
  std::vector<std::string> bases;
  bases.reserve(place.trees.size());
  for (const CgroupTree& tree : place.trees) bases.push_back(tree.folder);
  Status result;
  for (const std::string& name : *names) {
    const std::vector<std::string> folders = below(bases, name);
    if (!is_directory(folders.front())) continue;
    auto lock = open_file(folders.front(), O_RDONLY | O_DIRECTORY);
    if (!lock || !lock_folder(lock->get())) continue;
    for (const std::string& box : boxes_below(folders)) {
      const std::vector<std::string> of_box = below(folders, box);
      kill_folders(place, of_box, 0);
      if (Status removed = remove_folders(of_box); !removed) result = removed;
    }
    if (Status removed = remove_folders(folders); !removed) result = removed;
  }
  remove_base(place);
  return result;
}

}  // namespace cofferdam::sandbox
