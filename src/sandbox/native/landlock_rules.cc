#include "sandbox/native/landlock_rules.h"

namespace cofferdam::sandbox {
namespace {

using contract::Access;
using contract::Profile;

constexpr std::uint64_t kRead = plan::kLandlockReadFile | plan::kLandlockReadDir;
constexpr std::uint64_t kWriteFile = plan::kLandlockWriteFile | plan::kLandlockTruncate;
// Everything but device nodes, which nothing in a box may make, and execution, which is said apart.
constexpr std::uint64_t kWrite = ((plan::kLandlockAbi2 & ~kRead & ~plan::kLandlockExecute) | kWriteFile) &
                                 ~(plan::kLandlockMakeChar | plan::kLandlockMakeBlock);

}  // namespace

std::vector<plan::PathRule> landlock_rules(const Profile& profile, const HostLayout& layout,
                                           const plan::Plan& plan) {
  const bool shell = profile.shell == contract::Shell::sandboxed;
  // The root holds what was planned. What is reached past it, by a descriptor that leads elsewhere, is not
  // below it.
  std::vector<plan::PathRule> rules = {{"/", shell ? kRead | plan::kLandlockExecute : kRead}};
  if (!shell) {
    if (!profile.agent_dir.empty()) rules.push_back({"/opt/agent", plan::kLandlockExecute});
    for (const ProgramFile& file : layout.programs) {
      if (file.execute) rules.push_back({file.target, plan::kLandlockExecute});
    }
  }
  if (!has_layer(plan, plan::Layer::read_only_root)) rules.push_back({"/", kWrite});
  for (const char* place : {"/home/agent", "/tmp", "/dev/shm"}) rules.push_back({place, kWrite});
  if (profile.work == Access::read_write) rules.push_back({"/workspace", kWrite});
  if (profile.metadata == Access::read_write) rules.push_back({"/workspace/.git", kWrite});
  if (profile.output == Access::read_write) rules.push_back({"/out", kWrite});
  // random and urandom are for reading: what the mounts allow and only these rules refuse, which the probe
  // shows.
  for (const char* device : {"/dev/null", "/dev/zero", "/dev/full", "/dev/tty"}) {
    rules.push_back({device, kWriteFile | plan::kLandlockIoctlDevice});
  }
  for (const char* device : {"/dev/random", "/dev/urandom"}) {
    rules.push_back({device, plan::kLandlockIoctlDevice});
  }
  rules.push_back({"/dev/pts", kWriteFile | plan::kLandlockIoctlDevice});
  rules.push_back({"/proc", kWriteFile});  // a process's own settings; the kernel's are read-only by mount
  return rules;
}

}  // namespace cofferdam::sandbox
