// One box on the native backend, from set-up to the end of everything in it.
#pragma once

#include <poll.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/process.h"
#include "base/result.h"
#include "contract/profile.h"
#include "contract/result.h"
#include "sandbox/controls.h"
#include "sandbox/native/cgroup.h"

namespace cofferdam::sandbox {

struct BoxHost {
  std::string init;               // path of cofferdam-init
  std::optional<UserIds> run_as;  // when we are root: who we become for every box
  Requirements requirements;
  std::shared_ptr<AttemptGroup> groups = nullptr;  // in which every box has a group; null: boxes have none
  std::string why_no_groups = "none was asked for";
};

// What the box's init said after go.
struct BoxReport {
  // over: a limit of the plan's was passed, and init has begun to end the box. full: a storage had no room
  // left; the program goes on.
  enum class Kind { started, not_started, deadline, over, full, exited, gone, lost };
  Kind kind = Kind::lost;
  ExitStatus status;                // exited
  int error = 0;                    // not_started: errno
  bool left_over = false;           // gone: processes were killed after the program had ended
  std::string control;              // over: "memory", "pids"; full: "work-bytes", "work-inodes", "scratch"
  std::uint64_t peak = 0;           // over: bytes, or processes and threads
  std::uint64_t peak_bytes = 0;     // gone: of the largest process, as getrusage(2) has it
  std::uint64_t sampled_bytes = 0;  // gone: of all together, as init sampled them
  std::uint64_t peak_pids = 0;
  std::uint64_t cpu_ms = 0;
  std::uint64_t work_bytes = 0;
  std::uint64_t work_inodes = 0;
};

// Owns the box: destroying it kills everything in it and waits. Not thread safe.
class Box {
 public:
  Box(Box&&) = default;
  Box& operator=(Box&&) = delete;
  ~Box();
  // Sets the box up and lets its probes run; the program waits for go(). An Error means that it could not be
  // set up. A box whose controls are not all proven is returned all the same, so that they can be recorded:
  // go() then refuses.
  static Result<Box> start(const BoxHost& host, const contract::StorageRef& storage,
                           const contract::Profile& profile);

  const std::vector<contract::ControlFact>& controls() const { return controls_; }
  std::vector<UniqueFd>& listeners() { return listeners_; }  // in the order of the profile; take them
  // How long the probes inside took, as init says: for measurements only.
  std::uint64_t probing_us() const { return probing_us_; }
  Status go();
  pid_t init_pid() const { return init_pid_; }       // PID 1 of the box as the host sees it
  int control_fd() const { return control_.get(); }  // readable: receive() has something
  int gone_fd() const { return child_.pidfd(); }     // readable: the box is gone, as the kernel says
  Result<BoxReport> receive();
  void terminate();  // TERM to all, the grace, KILL
  // With a group: all of it is stopped before it is killed.
  void kill();
  // What the kernel has counted so far, until the box is destroyed; none without a group.
  std::optional<GroupFacts> group_facts() const;
  std::optional<GroupBounds> group_bounds() const;
  // Waits for the end of the box. Code::timeout: it still exists.
  Status wait_gone(std::chrono::milliseconds limit);
  // What is left when that fails, for the record.
  std::string describe() const;

 private:
  Box(std::optional<BoxGroup> group, Child child, UniqueFd control)
      : group_(std::move(group)), child_(std::move(child)), control_(std::move(control)) {}
  Status set_up(const contract::Profile& profile, const BoxHost& host, std::uint64_t process_limit);
  Status collect_answers(const contract::Profile& profile, std::vector<ProbeAnswer>* answers);
  std::optional<BoxGroup> group_;  // behind child_ in its end
  Child child_;                    // the launcher, whose end proves that the box is gone
  UniqueFd control_;
  UniqueFd init_;  // pidfd of the box's PID 1
  pid_t init_pid_ = 0;
  std::uint64_t probing_us_ = 0;
  std::vector<UniqueFd> listeners_;
  std::vector<contract::ControlFact> controls_;
};

// Descriptors of the caller's that are watched while a box of ours runs.
struct Interrupt {
  std::function<void(std::vector<pollfd>*)> add;
  // Called after every poll with the caller's entries; true ends the box with Code::conflict.
  std::function<bool(const std::vector<pollfd>&)> stop;
};

// Runs a box of ours (prepare, snapshot, collect) to its end and collects its standard output.
struct BoxOutput {
  ExitStatus status;
  std::string out;
  std::string err;  // first 16 KiB
};
// Code::timeout at the profile's deadline; Code::protocol when the box ended without an exit status.
Result<BoxOutput> run_box(const BoxHost& host, const contract::StorageRef& storage, contract::Profile profile,
                          std::size_t max_output, const Interrupt& interrupt);

}  // namespace cofferdam::sandbox
