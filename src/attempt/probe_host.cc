#include "attempt/probe_host.h"

#include "attempt/box_host.h"
#include "sandbox/native/seccomp_filter.h"
#include "workspace/storage.h"

namespace cofferdam::attempt {

Result<std::vector<contract::ControlFact>> probe_host(const Host& host) {
  const sandbox::BoxHost boxes = box_host(host, "doctor");
  constexpr std::uint64_t kBytes = 8U << 20U;
  constexpr std::uint64_t kInodes = 256;
  TRY(workspace::Storage storage, workspace::Storage::create({boxes.init, boxes.run_as, kBytes, kInodes}));
  contract::Profile profile;
  profile.kind = "doctor";
  profile.argv = {"/bin/true"};
  profile.work = contract::Access::read_write;
  profile.metadata = contract::Access::read_only;
  profile.scratch_bytes = kBytes;
  profile.scratch_inodes = kInodes;
  profile.work_bytes = kBytes;
  profile.work_inodes = kInodes;
  profile.memory_bytes = host.config.limits.memory_bytes;
  profile.pids = host.config.limits.pids;
  profile.deadline = std::chrono::seconds(30);
  std::vector<contract::ControlFact> controls;
  {
    // Never told to go: its end is the destructor's.
    TRY(sandbox::Box box, sandbox::Box::start(boxes, storage.ref(), profile));
    controls = box.controls();
  }
  TRY_VOID(storage.release());
  return controls;
}

std::string seccomp_listing() {
  return sandbox::seccomp_text();
}

}  // namespace cofferdam::attempt
