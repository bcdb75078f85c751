#include "kernel/lab.h"

#include <linux/filter.h>
#include <linux/seccomp.h>

#include <cstring>

#include "base/io.h"
#include "init/client.h"
#include "sandbox/native/host_layout.h"
#include "sandbox/native/plan_box.h"

namespace cofferdam::test {

Result<workspace::Storage> make_storage(const LabOptions& options) {
  workspace::StorageOptions storage;
  storage.init = options.host.init;
  storage.run_as = options.host.run_as;
  storage.work_bytes = kWorkBytes;
  storage.work_inodes = kWorkInodes;
  return workspace::Storage::create(storage);
}

contract::Profile agent_profile(const LabOptions& options, std::vector<std::string> argv) {
  contract::Profile profile;
  profile.kind = "agent";
  profile.argv = std::move(argv);
  profile.env = {"HOME=/home/agent", "PATH=/usr/bin:/bin", "LC_ALL=C.UTF-8", "EMPTY="};
  profile.work = contract::Access::read_write;
  profile.metadata = contract::Access::read_only;
  profile.agent_dir = options.agent_dir;
  profile.scratch_bytes = 4U << 20U;
  profile.scratch_inodes = 100;
  profile.work_bytes = kWorkBytes;
  profile.work_inodes = kWorkInodes;
  profile.deadline = kDeadline;
  profile.grace = std::chrono::milliseconds(200);
  return profile;
}

Result<sandbox::BoxOutput> run_agent(const LabOptions& options, const contract::StorageRef& storage,
                                     std::vector<std::string> argv) {
  return sandbox::run_box(options.host, storage, agent_profile(options, std::move(argv)), 1U << 20U, {});
}

namespace {

std::string allow_everything() {
  const sock_filter allow{BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW};
  std::string bytes(sizeof allow, '\0');
  std::memcpy(bytes.data(), &allow, sizeof allow);
  return bytes;
}

// Until init closes its socket: go when it is ready, and the program's exit status.
Result<ExitStatus> follow(int control) {
  ExitStatus status;
  while (true) {
    TRY(init_client::InitMessage message, init_client::receive(control));
    switch (message.kind) {
      case 0:
        return status;
      case plan::from_init::failed:
        return init_client::setup_error("agent", message);
      case plan::from_init::ready:
        TRY_VOID(init_client::send_order(control, plan::to_init::go));
        break;
      case plan::from_init::exited:
        status.code = static_cast<int>(init_client::parse_number(message.fields.at(1)).value_or(255));
        break;
      default:
        break;
    }
  }
}

}  // namespace

Result<sandbox::BoxOutput> run_without_filter(const LabOptions& options, const contract::StorageRef& storage,
                                              std::vector<std::string> argv) {
  TRY(Pipe out, make_pipe());
  contract::Profile profile = agent_profile(options, std::move(argv));
  profile.fds = {{out.write.get(), 1}};
  TRY(sandbox::HostLayout layout, sandbox::read_host_layout());
  init_client::InitOptions starting;
  starting.program = options.host.init;
  starting.run_as = options.host.run_as;
  starting.fds = {
      {storage.userns_fd, plan::kUsernsFd}, {storage.mntns_fd, plan::kMntnsFd}, {out.write.get(), 1}};
  TRY(init_client::InitProcess process,
      init_client::start_init(starting, sandbox::plan_box(profile, layout, allow_everything())));
  out.write.reset();
  sandbox::BoxOutput output;
  TRY(output.status, follow(process.control.get()));
  TRY(output.out, read_to_end(out.read.get(), 65536));  // little enough to lie in the pipe until now
  TRY(ExitStatus ended, process.child.wait(std::chrono::seconds(30)));
  if (!ended.success()) return make_error(Code::internal, "init ended with " + ended.describe());
  return output;
}

}  // namespace cofferdam::test
