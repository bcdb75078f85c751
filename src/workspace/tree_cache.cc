#include "workspace/tree_cache.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>

#include "base/in_use.h"
#include "base/process_id.h"
#include "base/text.h"
#include "contract/vault.h"

namespace cofferdam::workspace {
namespace {

constexpr const char* kBootFile = "/boot";
constexpr const char* kBytesFile = "/bytes";
// Each further try means that an eviction came between two system calls.
constexpr int kMaxTries = 100;

std::vector<std::string> folders_in(const std::string& path) {
  std::vector<std::string> folders;
  auto names = list_dir(path);
  if (!names) return folders;  // there is none, or no longer
  for (const std::string& name : *names) {
    std::string folder = path;
    folder.append("/").append(name);
    if (is_own_folder(folder)) folders.push_back(std::move(folder));
  }
  return folders;
}

std::string name_of(const std::string& folder) {
  return folder.substr(folder.rfind('/') + 1);
}

std::string parent_of(const std::string& folder) {
  return folder.substr(0, folder.rfind('/'));
}

// The folders of all repositories that hold trees.
std::vector<std::string> tree_parents(const std::string& state_dir) {
  std::vector<std::string> parents = folders_in(state_dir + "/vault");
  for (std::string& parent : parents) parent += "/tree";
  return parents;
}

bool is_of_this_boot(const std::string& folder) {
  auto made = read_file(folder + kBootFile, 64);
  auto current = boot_id();
  return made && current && trim(*made) == *current;
}

// As it was measured when it was made: a walk over every file is too much for every attempt's end.
std::uint64_t recorded_bytes(const std::string& folder) {
  constexpr std::size_t kMaxNumber = 32;
  auto text = read_file(folder + kBytesFile, kMaxNumber);
  return text ? std::strtoull(text->c_str(), nullptr, 10) : 0;
}

// False when it is in use.
Result<bool> evict_one(const std::string& folder) {
  const std::string gone = parent_of(folder) + "/" + kGonePrefix + random_hex(8);
  {
    const std::optional<UniqueFd> lock = lock_unused(folder);
    if (!lock.has_value()) return false;
    if (::rename(folder.c_str(), gone.c_str()) != 0) return sys_error("cannot evict " + folder, errno);
  }
  TRY_VOID(remove_tree(gone));
  return true;
}

}  // namespace

std::string cached_tree_folder(const std::string& state_dir, const contract::CloneIdentity& clone,
                               const UserIds& owner) {
  std::string folder = contract::vault_folder(state_dir + "/vault", clone.repository) + "/tree/";
  folder.append(clone.tree).append("-").append(std::to_string(owner.uid));
  return folder.append("-").append(std::to_string(owner.gid));
}

Result<std::optional<CachedTree>> use_tree(const std::string& folder) {
  using Found = std::optional<CachedTree>;
  const std::string path = folder + kUseFile;
  for (int tries = 0; tries < kMaxTries; ++tries) {
    auto lock = open_file(path, O_RDWR | O_NOFOLLOW);
    if (!lock) return Found{};
    TRY_VOID(lock_waiting(lock->get(), LOCK_SH, path));
    if (!is_still_at(lock->get(), path)) continue;
    if (is_of_this_boot(folder)) {
      mark_use(lock->get());
      return Found(CachedTree{folder, *std::move(lock)});
    }
    // Nobody of this boot uses it; another process may have removed it already.
    lock->reset();
    (void)evict_one(folder).has_value();
    return Found{};
  }
  return Found{};
}

Result<NewTree> NewTree::create(const std::string& folder, const std::optional<UserIds>& owner) {
  const std::string parent = parent_of(folder);
  TRY_VOID(make_dirs(parent));
  TRY(Nursery nursery, Nursery::create(parent));
  NewTree tree(std::move(nursery));
  tree.made_ = tree.nursery_.path() + "/made";
  TRY_VOID(make_new_dir(tree.made_));
  TRY_VOID(make_new_dir(tree.tree_dir(), 0755));
  if (::chmod(tree.tree_dir().c_str(), 0755) != 0 ||
      (owner.has_value() && ::chown(tree.tree_dir().c_str(), owner->uid, owner->gid) != 0)) {
    return sys_error("cannot give away " + tree.tree_dir(), errno);
  }
  TRY(tree.index_, open_file(tree.made_ + "/index", O_WRONLY | O_CREAT | O_EXCL));
  TRY(const std::string boot, boot_id());
  TRY_VOID(write_file_atomic(tree.made_ + kBootFile, boot));
  TRY_VOID(write_file_atomic(tree.made_ + kUseFile, ""));
  return tree;
}

Status NewTree::finish(const std::string& folder) {
  index_.reset();
  TRY(const std::uint64_t bytes, tree_bytes(made_));
  TRY_VOID(write_file_atomic(made_ + kBytesFile, std::to_string(bytes)));
  if (::rename(made_.c_str(), folder.c_str()) != 0 && errno != ENOTEMPTY && errno != EEXIST) {
    return sys_error("cannot put the work tree in place: " + folder, errno);
  }
  return {};
}

Result<std::vector<TreeEntry>> list_trees(const std::string& state_dir) {
  std::vector<TreeEntry> entries;
  for (const std::string& parent : tree_parents(state_dir)) {
    for (const std::string& folder : folders_in(parent)) {
      if (starts_with(name_of(folder), ".")) continue;
      TreeEntry entry;
      entry.folder = folder;
      entry.last_use_ns = last_use_ns(folder);
      entry.in_use = !lock_unused(folder).has_value();
      entry.bytes = recorded_bytes(folder);
      entries.push_back(std::move(entry));
    }
  }
  return entries;
}

Result<TreeEviction> evict_trees(const std::string& state_dir, std::uint64_t max_bytes) {
  TreeEviction done;
  const std::string vault = state_dir + "/vault";
  if (!is_own_folder(vault)) return done;
  // One at a time: the leftovers of one are being removed by the other.
  TRY(const UniqueFd turn, open_file(vault + "/tree-eviction-lock", O_RDWR | O_CREAT | O_NOFOLLOW));
  if (::flock(turn.get(), LOCK_EX | LOCK_NB) != 0) return done;
  for (const std::string& parent : tree_parents(state_dir)) {
    for (const std::string& folder : folders_in(parent)) {
      if (!starts_with(name_of(folder), ".")) continue;
      TRY(const bool removed, remove_leftover(folder));
      if (removed) ++done.leftovers;
    }
  }
  TRY(std::vector<TreeEntry> entries, list_trees(state_dir));
  std::uint64_t total = 0;
  for (const TreeEntry& entry : entries) total += entry.bytes;
  std::stable_sort(entries.begin(), entries.end(), [](const TreeEntry& left, const TreeEntry& right) {
    return left.last_use_ns < right.last_use_ns;
  });
  for (TreeEntry& entry : entries) {
    if (total <= max_bytes && max_bytes != 0) break;
    if (entry.in_use) continue;
    TRY(const bool evicted, evict_one(entry.folder));
    if (!evicted) continue;
    total -= entry.bytes;
    done.removed.push_back(std::move(entry));
  }
  return done;
}

}  // namespace cofferdam::workspace
