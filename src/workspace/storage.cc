#include "workspace/storage.h"

#include <fcntl.h>

#include "base/io.h"
#include "init/client.h"

namespace cofferdam::workspace {
namespace {

constexpr int kKeeperBoundMs = 30'000;

// Room for the pack, its index once more (git writes temporary files), the work tree's index and refs.
std::uint64_t metadata_bytes(const StorageOptions& options) {
  return options.base_bytes * 2 + options.work_inodes * 512 + (16U << 20U);
}

plan::Plan plan_keeper(const StorageOptions& options) {
  using plan::Op;
  using plan::OpCode;
  plan::Plan plan;
  plan.role = plan::Role::keeper;
  plan.ops = {
      Op{OpCode::dir, "", "/box", 0755, 0, 0},
      Op{OpCode::tmpfs, "", "/work", options.work_bytes, options.work_inodes, 0755},
      Op{OpCode::dir, "", "/work/tree", 0755, 0, 0},
      Op{OpCode::dir, "", "/work/tree/.git", 0755, 0, 0},
      Op{OpCode::tmpfs, "", "/meta", metadata_bytes(options), 4096, 0755},
      Op{OpCode::dir, "", "/meta/git", 0755, 0, 0},
      // Loose objects of everything that the agent may have written, and a pack of them.
      Op{OpCode::tmpfs, "", "/out", options.work_bytes * 2, options.work_inodes * 2 + 4096, 0755},
  };
  return plan;
}

}  // namespace

Result<Storage> Storage::create(const StorageOptions& options) {
  init_client::InitOptions starting;
  starting.program = options.init;
  starting.run_as = options.run_as;
  // It ends by its own watch over the socket, after the plan's linger time (none yet: nothing could take the
  // storage over), and not by a death signal, which would be tied to the thread that started it.
  starting.die_with_parent = false;
  TRY(init_client::InitProcess process, init_client::start_init(starting, plan_keeper(options)));
  TRY(bool spoke, wait_readable(process.control.get(), kKeeperBoundMs));
  if (!spoke) return make_error(Code::timeout, "the storage keeper did not start in time");
  TRY(init_client::InitMessage message, init_client::receive(process.control.get()));
  if (message.kind == plan::from_init::failed) return init_client::setup_error("storage", message);
  if (message.kind != plan::from_init::ready)
    return make_error(Code::protocol, "the storage keeper ended early");
  const std::string ns = "/proc/" + std::to_string(process.child.pid()) + "/ns/";
  TRY(UniqueFd userns, open_file(ns + "user", O_RDONLY));
  TRY(UniqueFd mntns, open_file(ns + "mnt", O_RDONLY));
  return Storage(std::move(process.child), std::move(process.control), std::move(userns), std::move(mntns));
}

std::string Storage::describe() const {
  return "storage keeper, pid " + std::to_string(keeper_.pid());
}

Status Storage::release() {
  if (!keeper_.running()) return {};
  TRY_VOID(init_client::send_order(control_.get(), plan::to_init::release));
  userns_.reset();
  mntns_.reset();
  auto ended = keeper_.wait(std::chrono::milliseconds(kKeeperBoundMs));
  if (!ended) return ended.error().with("storage keeper");
  return {};
}

}  // namespace cofferdam::workspace
