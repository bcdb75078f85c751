#include "attempt/make_workspace.h"

#include <fmt/core.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>

#include "base/failpoint.h"
#include "base/file.h"
#include "base/text.h"
#include "contract/phase.h"
#include "workspace/image.h"
#include "workspace/prepare.h"
#include "workspace/room.h"
#include "workspace/slots.h"
#include "workspace/tree_cache.h"

namespace cofferdam::attempt {
namespace {

using workspace::CachedTree;
using workspace::TreeForm;

UserIds owner_of_trees(const sandbox::BoxHost& boxes) {
  return boxes.run_as.value_or(UserIds{::geteuid(), ::getegid()});
}

// A cached tree leaves half of what is free to everybody else on that disk.
Result<workspace::TreeBounds> room_for_tree(const std::string& state_dir) {
  struct statvfs info {};
  if (::statvfs(state_dir.c_str(), &info) != 0) return sys_error("cannot look at " + state_dir, errno);
  constexpr std::uint64_t kMostFiles = 4'000'000;
  workspace::TreeBounds bounds{info.f_bavail * info.f_frsize / 2, kMostFiles};
  // Some file systems have no fixed number of inodes and report none.
  if (info.f_files != 0) bounds.files = std::min(bounds.files, std::uint64_t{info.f_favail} / 2);
  return bounds;
}

// Owns what holds the work until the keeper has it; nothing in it: memory.
struct Holder {
  const char* kind = "tmpfs";  // as result.storage.kind has it
  UniqueFd image;
  workspace::Slot slot;
};

class Maker {
 public:
  explicit Maker(const WorkspaceInput& input) : in_(input) {}

  Result<Workspace> make() {
    const bool read_only = contract::is_read_only(in_.invocation->phase);
    TreeForm form = read_only ? TreeForm::read_only : TreeForm::overlay;
    std::string reason;
    std::optional<CachedTree> tree;
    if (form == TreeForm::overlay && !in_.host.config.work_overlay) {
      form = TreeForm::checkout;
      reason = "workspace.tree in the configuration is \"checkout\"";
    } else {
      TRY(tree, cached_tree());
    }
    if (form != TreeForm::checkout && !tree.has_value()) {
      form = TreeForm::checkout;
      reason = "the cached tree was evicted as often as it was made";
    }
    workspace::StorageOptions wanted = options(form, tree);
    TRY(const Holder holder, form == TreeForm::read_only ? Result<Holder>(Holder()) : find_holder());
    wanted.disk_fd = holder.image.get();
    wanted.disk_dir = holder.slot.folder;
    if (holder.slot.lock.valid()) wanted.held_fds.push_back(holder.slot.lock.get());
    TRY(workspace::Storage storage, workspace::Storage::create(wanted));
    if (!storage.tree_problem().empty()) {
      reason = "an overlay does not do on this storage: " + storage.tree_problem();
    }
    contract::StorageFacts facts{holder.kind,
                                 static_cast<std::uint64_t>(in_.host.config.keep_storage.count()),
                                 workspace::tree_form_name(storage.tree_form()), std::move(reason)};
    TRY_VOID(record_keeper(&storage));
    if (storage.tree_form() == TreeForm::checkout) {
      TRY_VOID(fill(storage.ref(), workspace::prepare_profile(in_.invocation, in_.cloned.identity),
                    "raise limits.work_bytes or limits.work_inodes if the storage was full"));
    }
    return Workspace{std::move(storage), std::move(facts)};
  }

 private:
  workspace::StorageOptions options(TreeForm form, const std::optional<CachedTree>& tree) const {
    const contract::Limits& limits = in_.invocation->limits;
    workspace::StorageOptions options{in_.host.init, in_.boxes.run_as, limits.work_bytes, limits.work_inodes,
                                      in_.host.config.keep_storage};
    options.metadata = workspace::plan_metadata(
        in_.cloned.identity, in_.host.config.branch_prefix + "/" + in_.invocation->attempt_id,
        in_.cloned.packs.shallow);
    options.objects_dir = in_.cloned.packs.objects_dir;
    options.form = form;
    if (in_.image != nullptr) {
      options.image_dir = in_.image->tree;
      options.held_fds = {in_.image->lock.get()};
    }
    if (!tree.has_value()) return options;
    options.tree_dir = tree->tree_dir();
    options.index_path = tree->index_path();
    options.held_fds.push_back(tree->lock.get());
    return options;
  }

  // What holds the work. The host must have room for all of it.
  Result<Holder> find_holder() const {
    using contract::WorkStorage;
    const contract::Limits& limits = in_.invocation->limits;
    const WorkStorage wanted = in_.host.config.work_storage;
    const bool root = in_.boxes.run_as.has_value();
    if (!root && (wanted == WorkStorage::slot || wanted == WorkStorage::automatic)) {
      TRY(Holder holder, find_slot());
      if (holder.slot.lock.valid()) return holder;
    }
    if (wanted == WorkStorage::slot) return no_slot(root);
    const bool large = limits.work_bytes >= workspace::kLeastImageBytes &&
                       limits.work_inodes >= workspace::kLeastImageInodes;
    const bool possible = root && large && workspace::can_make_images();
    if (wanted == WorkStorage::image && !possible) return no_image(root, large);
    Holder holder;
    if (wanted == WorkStorage::memory || !possible) {
      TRY_VOID(workspace::check_memory(limits.work_bytes));
      return holder;
    }
    TRY_VOID(workspace::check_disk(in_.attempt_dir, limits.work_bytes));
    TRY(holder.image,
        workspace::make_image(in_.attempt_dir, limits.work_bytes, limits.work_inodes, *in_.boxes.run_as));
    holder.kind = "image";
    return holder;
  }

  // Emptied before anything else is in it: by a box, which sees nothing but the slot.
  Result<Holder> find_slot() const {
    const contract::Limits& limits = in_.invocation->limits;
    Holder holder;
    TRY(holder.slot,
        workspace::take_slot(in_.host.config.slots_dir, ::geteuid(), limits.work_bytes, limits.work_inodes));
    if (!holder.slot.lock.valid()) return holder;
    holder.kind = "slot";
    workspace::StorageOptions emptying{in_.host.init, in_.boxes.run_as, limits.work_bytes,
                                       limits.work_inodes};
    emptying.form = TreeForm::emptying;
    emptying.tree_dir = holder.slot.folder;
    emptying.held_fds = {holder.slot.lock.get()};
    TRY(workspace::Storage storage, workspace::Storage::create(emptying));
    TRY(const sandbox::BoxOutput output, run(storage.ref(), workspace::empty_profile()));
    if (!output.status.success()) {
      return make_error(
          Code::io, fmt::format("cannot empty {}: {}", holder.slot.folder, printable(trim(output.err), 500)),
          "let root remove the slots and make them again with `cofferdam host-setup`");
    }
    TRY_VOID(storage.release());
    return holder;
  }

  static Error no_slot(bool root) {
    if (root) {
      return make_error(Code::denied, "workspace.storage is \"slot\", which is for users who are not root",
                        "set it to \"auto\" or \"image\"");
    }
    return make_error(
        Code::denied,
        "there is no slot for this user that is within limits.work_bytes and "
        "limits.work_inodes",
        "let root make some with `cofferdam host-setup`, raise the limits to what they have, or "
        "set workspace.storage to \"memory\"");
  }

  static Error no_image(bool root, bool large) {
    if (!root) {
      return make_error(Code::denied, "workspace.storage is \"image\", which only root can make",
                        "set it to \"auto\" or \"memory\"");
    }
    if (!large) {
      return make_error(Code::denied, "limits.work_bytes or limits.work_inodes is too small for an image",
                        "raise them to 2 MiB and 64, or set workspace.storage to \"memory\"");
    }
    return make_error(Code::unsupported_host, "this host has no loop devices or no mke2fs",
                      "install e2fsprogs and load the kernel's loop module, or set workspace.storage to "
                      "\"memory\"");
  }

  // First the record, then the order: a keeper that outlives us can always be found.
  Status record_keeper(workspace::Storage* storage) const {
    failpoint_part("keeper", storage->keeper().pid);
    TRY_VOID(write_file_atomic(in_.attempt_dir + "/keeper", to_line(storage->keeper())));
    failpoint("keeper-recorded");
    // One that has just ended takes nothing away as long as we hold its namespaces; a recovery would find
    // out.
    (void)storage->keep().has_value();
    return {};
  }

  // None when it was evicted each time before we could use it.
  Result<std::optional<CachedTree>> cached_tree() const {
    constexpr int kMaxTries = 10;
    const std::string folder =
        workspace::cached_tree_folder(in_.host.state_dir, in_.cloned.identity, owner_of_trees(in_.boxes));
    for (int tries = 0; tries < kMaxTries; ++tries) {
      TRY(std::optional<CachedTree> found, workspace::use_tree(folder));
      if (found.has_value()) return found;
      TRY_VOID(make_tree(folder));
    }
    return std::optional<CachedTree>{};
  }

  // In a storage of its own, which nobody keeps: when we end, so do keeper and box, and an eviction removes
  // what they had begun.
  Status make_tree(const std::string& folder) const {
    TRY(workspace::NewTree tree, workspace::NewTree::create(folder, in_.boxes.run_as));
    TRY(const workspace::TreeBounds bounds, room_for_tree(in_.host.state_dir));
    workspace::StorageOptions making = options(TreeForm::making, std::nullopt);
    making.tree_dir = tree.tree_dir();
    making.image_dir.clear();
    making.work_inodes = std::max(making.work_inodes, bounds.files);  // the metadata's bound follows from it
    TRY(workspace::Storage storage, workspace::Storage::create(making));
    failpoint_part("tree-keeper", storage.keeper().pid);
    TRY_VOID(fill(storage.ref(), workspace::make_tree_profile(in_.cloned.identity, bounds, tree.index_fd()),
                  "free space where the state folder is, if its disk was full"));
    TRY_VOID(storage.release());
    failpoint("tree-made");
    return tree.finish(folder);
  }

  // Under the attempt's own deadline, whatever step it is.
  Result<sandbox::BoxOutput> run(const contract::StorageRef& storage, contract::Profile profile) const {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(in_.deadline -
                                                                            std::chrono::steady_clock::now());
    profile.deadline = std::clamp(left, std::chrono::milliseconds(1), profile.deadline);
    return sandbox::run_box(in_.boxes, storage, std::move(profile), 4096, in_.interrupt);
  }

  Status fill(const contract::StorageRef& storage, contract::Profile profile, const char* hint) const {
    TRY(const sandbox::BoxOutput output, run(storage, std::move(profile)));
    if (!output.status.success()) {
      return make_error(
          Code::exhausted,
          fmt::format("cannot check out {}: {}", in_.cloned.identity.base, printable(trim(output.err), 500)),
          hint);
    }
    return workspace::check_prepared(output.out, in_.cloned.identity);
  }

  const WorkspaceInput& in_;
};

}  // namespace

Result<Workspace> make_workspace(const WorkspaceInput& input) {
  return Maker(input).make();
}

}  // namespace cofferdam::attempt
