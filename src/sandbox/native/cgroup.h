// Control groups of one attempt: a group for all of it, and one in it for each of its boxes. What a box takes
// of memory, processes and processor is bounded and counted there, whatever becomes of its init.
//
// A group of an attempt is locked (flock(2)) by the supervisor that made it, so one whose lock can be taken
// belongs to nobody: sweep_cgroups().
//
// Not thread safe.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/process.h"
#include "base/result.h"
#include "contract/profile.h"
#include "sandbox/native/cgroup_place.h"

namespace cofferdam::sandbox {

struct GroupBounds {
  std::uint64_t memory_bytes = 0;  // programs, the files of file systems in memory, and what the kernel takes
  std::uint64_t pids = 0;          // processes and threads, launcher and init included
};
// Of a box: what its programs may take, and the sizes of the file systems in memory that it can fill.
GroupBounds bounds_of(const contract::Profile& profile);
// What a box of ours may take of memory beside its files.
inline constexpr std::uint64_t kOwnBoxBytes = 2ULL << 30U;
inline constexpr std::uint64_t kOwnBoxPids = 512;
// Of every box: launcher and init.
inline constexpr std::uint64_t kPidsOfInit = 2;

// What the kernel has counted; 0 where it does not count it.
struct GroupFacts {
  std::uint64_t peak_bytes = 0;
  std::uint64_t peak_pids = 0;     // launcher and init included
  std::uint64_t oom_kills = 0;     // processes that were killed because the bound of memory was reached
  std::uint64_t pids_refused = 0;  // forks that failed because the bound of processes was reached
};

class AttemptGroup;

// Owns the group of one box: destroying it kills what is in it and removes it.
class BoxGroup {
 public:
  BoxGroup(BoxGroup&& other) noexcept = default;
  BoxGroup& operator=(BoxGroup&&) = delete;
  ~BoxGroup();

  const GroupBounds& bounds() const { return bounds_; }
  const CgroupPlace& place() const;
  // The group's folder in place().trees[i].
  const std::string& folder(std::size_t i) const { return folders_[i]; }
  // Files into which a process writes "0" to enter the group: SpawnOptions::join_fds.
  std::vector<int> entries() const;
  // SpawnOptions::group_fd; of version 2 only, where one folder is all of the group.
  int folder_fd() const { return folder_fd_.get(); }
  GroupFacts facts() const;
  // Stops everything in the group, sends SIGKILL to all of it but `spared`, which has to wait for the rest,
  // and lets the dead go. Bounded in time: what does not stop in time is killed while it runs. In version 2
  // `spared` is killed with the rest.
  void kill(pid_t spared) const;
  bool empty() const;
  // Waits until it is, at most that long.
  Status wait_empty(std::chrono::milliseconds limit) const;

 private:
  friend class AttemptGroup;
  BoxGroup(std::shared_ptr<AttemptGroup> attempt, const GroupBounds& bounds)
      : attempt_(std::move(attempt)), bounds_(bounds) {}
  std::shared_ptr<AttemptGroup> attempt_;
  GroupBounds bounds_;
  std::vector<std::string> folders_;
  std::vector<UniqueFd> entries_;
  UniqueFd folder_fd_;
};

// Owns the group of one attempt: made with the first box, removed with the last owner.
class AttemptGroup : public std::enable_shared_from_this<AttemptGroup> {
 public:
  // `name` is for people; the group's own is made from it.
  AttemptGroup(CgroupPlace place, const std::string& name);
  AttemptGroup(const AttemptGroup&) = delete;
  AttemptGroup& operator=(const AttemptGroup&) = delete;
  ~AttemptGroup();
  const CgroupPlace& place() const { return place_; }
  Result<BoxGroup> make_box(const std::string& kind, const GroupBounds& bounds);

 private:
  Status make();
  Status make_once(bool* again);
  CgroupPlace place_;
  std::string name_;
  UniqueFd lock_;
  std::vector<std::string> folders_;  // as place_.trees
  unsigned boxes_ = 0;
};

// Ends and removes the groups of attempts whose supervisor has gone.
Status sweep_cgroups(const CgroupPlace& place);

// As root, for a user who is not: a subtree of the user's in every hierarchy that boxes need. Calling it
// again changes nothing. Code::unsupported_host when there is none.
Status make_user_cgroups(const std::string& name, const UserIds& owner);
// Code::conflict when something still uses it.
Status remove_user_cgroups(const std::string& name, uid_t user);

}  // namespace cofferdam::sandbox
