#include "clone/cache.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <map>
#include <numeric>

#include "base/in_use.h"
#include "base/text.h"

namespace cofferdam::clone {
namespace {

constexpr std::size_t kMaxAlternatesBytes = 64U << 10U;
constexpr std::size_t kMaxRepositoryBytes = 8192;
// Each further try means that an eviction came between two system calls.
constexpr int kMaxTries = 100;

Result<std::vector<std::string>> folders_in(const std::string& path) {
  std::vector<std::string> folders;
  if (!is_own_folder(path)) return folders;
  TRY(std::vector<std::string> names, list_dir(path));
  for (std::string& name : names) {
    std::string folder = path;
    folder.append("/").append(name);
    if (is_own_folder(folder)) folders.push_back(std::move(name));
  }
  return folders;
}

// ".../<repository>/base/<head>/objects" as AttemptStore writes it. By its end, so that a state folder that
// was moved still protects its bases.
std::string key_of_alternate(std::string_view line) {
  const std::vector<std::string> parts = split(line, '/');
  const std::size_t count = parts.size();
  if (count < 4 || parts[count - 1] != "objects" || parts[count - 3] != "base") return {};
  return parts[count - 4] + "/base/" + parts[count - 2];
}

using Borrowers = std::map<std::string, std::vector<std::string>>;

// A store that cannot be read is an error: it could need any base.
Result<Borrowers> find_borrowers(const std::string& state_dir) {
  Borrowers borrowers;
  const std::string attempts = state_dir + "/attempts";
  TRY(const std::vector<std::string> ids, folders_in(attempts));
  for (const std::string& id : ids) {
    if (starts_with(id, ".")) continue;  // no id: what is left of a discard that was killed
    std::string path = attempts;
    path.append("/").append(id).append("/store.git/objects/info/alternates");
    if (!exists(path)) continue;
    TRY(const std::string text, read_file(path, kMaxAlternatesBytes));
    for (const std::string& line : split(text, '\n')) {
      const std::string key = key_of_alternate(line);
      if (!key.empty()) borrowers[key].push_back(id);
    }
  }
  return borrowers;
}

// What of a base others have too. Packs that go meanwhile are not counted.
std::vector<SharedFile> shared_files(const std::string& folder) {
  std::vector<SharedFile> shared;
  auto names = list_dir(folder + "/objects/pack");
  if (!names) return shared;
  for (const std::string& name : *names) {
    std::string path = folder;
    path.append("/objects/pack/").append(name);
    struct stat info {};
    if (::lstat(path.c_str(), &info) != 0 || info.st_nlink < 2) continue;
    shared.push_back({info.st_ino, static_cast<std::uint64_t>(info.st_blocks) * 512});
  }
  return shared;
}

Result<BaseEntry> look_at(const std::string& vault, const std::string& repository, const std::string& name) {
  BaseEntry entry;
  entry.key = repository + "/base/" + name;
  entry.head = name.substr(0, name.find('-'));
  const std::string folder = vault + "/" + entry.key;
  // In this order: whoever uses the base after the look at the time changes it.
  entry.last_use_ns = last_use_ns(folder);
  if (exists(folder + kUseFile)) entry.in_use = !lock_unused(folder).has_value();
  TRY(entry.bytes, tree_bytes(folder));
  entry.shared = shared_files(folder);
  for (const SharedFile& one : entry.shared) entry.bytes -= std::min(entry.bytes, one.bytes);
  return entry;
}

// False when the base is in use, or was used since `entry` was taken.
Result<bool> evict_one(const std::string& vault, const BaseEntry& entry) {
  const std::string folder = vault + "/" + entry.key;
  const std::string gone = folder.substr(0, folder.rfind('/') + 1) + kGonePrefix + random_hex(8);
  {
    const bool was_used = exists(folder + kUseFile);  // otherwise the lock makes the file, with a new time
    const std::optional<UniqueFd> lock = lock_unused(folder);
    struct stat info {};
    if (!lock.has_value() || ::fstat(lock->get(), &info) != 0) return false;
    if (was_used && modified_ns(info) != entry.last_use_ns) return false;
    if (::rename(folder.c_str(), gone.c_str()) != 0) return sys_error("cannot evict " + folder, errno);
  }
  TRY_VOID(remove_tree(gone));
  return true;
}

// What killed processes have left: nobody holds it, and nobody will look for it.
Result<std::uint64_t> remove_leftovers(const std::string& vault) {
  std::uint64_t removed = 0;
  TRY(const std::vector<std::string> repositories, folders_in(vault));
  for (const std::string& repository : repositories) {
    std::string parent = vault;
    parent.append("/").append(repository).append("/base");
    TRY(const std::vector<std::string> names, folders_in(parent));
    for (const std::string& name : names) {
      if (!starts_with(name, kNewPrefix) && !starts_with(name, kGonePrefix)) continue;
      std::string path = parent;
      path.append("/").append(name);
      TRY(const bool was_one, remove_leftover(path));
      if (was_one) ++removed;
    }
  }
  return removed;
}

}  // namespace

BaseUse::BaseUse(UniqueFd lock) : lock_(std::move(lock)) {
  if (lock_.valid()) mark_use(lock_.get());
}

BaseUse& BaseUse::operator=(BaseUse&& other) noexcept {
  if (this != &other) {
    if (lock_.valid()) mark_use(lock_.get());
    lock_ = std::move(other.lock_);
  }
  return *this;
}

BaseUse::~BaseUse() {
  if (lock_.valid()) mark_use(lock_.get());
}

Result<BaseUse> use_base(const std::string& folder) {
  const std::string path = folder + kUseFile;
  for (int tries = 0; tries < kMaxTries; ++tries) {
    if (!is_own_folder(folder)) break;
    // Also made here: bases of earlier versions do not have it.
    auto lock = open_file(path, O_RDWR | O_CREAT | O_NOFOLLOW);
    if (!lock && !is_own_folder(folder)) break;
    if (!lock) return std::move(lock).error();
    // Waits only for an eviction that is between its lock and its rename.
    TRY_VOID(lock_waiting(lock->get(), LOCK_SH, path));
    if (is_still_at(lock->get(), path)) return BaseUse(*std::move(lock));
  }
  return make_error(Code::not_found, "no base pack in " + folder);
}

Result<std::vector<BaseEntry>> list_bases(const std::string& state_dir) {
  const std::string vault = state_dir + "/vault";
  std::vector<BaseEntry> entries;
  TRY(const std::vector<std::string> repositories, folders_in(vault));
  for (const std::string& repository : repositories) {
    std::string folder = vault;
    folder.append("/").append(repository);
    std::string origin;
    if (auto text = read_file(folder + "/repository", kMaxRepositoryBytes)) origin = *std::move(text);
    TRY(const std::vector<std::string> names, folders_in(folder + "/base"));
    for (const std::string& name : names) {
      if (!is_object_id(name.substr(0, name.find('-')))) continue;
      TRY(BaseEntry entry, look_at(vault, repository, name));
      entry.repository = origin;
      entries.push_back(std::move(entry));
    }
  }
  // After the looks at the locks: a store that was made before has ended its use, or is seen here.
  TRY(Borrowers borrowers, find_borrowers(state_dir));
  for (BaseEntry& entry : entries) entry.borrowers = std::move(borrowers[entry.key]);
  return entries;
}

std::vector<std::size_t> choose_evicted(const std::vector<BaseEntry>& entries, const CacheBounds& bounds) {
  std::vector<std::size_t> unneeded;
  std::map<std::uint64_t, std::size_t> holders;  // of a shared file: bases that nobody needs
  std::set<std::uint64_t> needed;                // shared with a base that stays: no eviction frees them
  std::uint64_t total = 0;
  for (std::size_t index = 0; index < entries.size(); ++index) {
    const BaseEntry& entry = entries[index];
    const bool stays = entry.in_use || !entry.borrowers.empty() || bounds.heads.count(entry.head) != 0;
    for (const SharedFile& one : entry.shared) {
      if (stays) needed.insert(one.inode);
    }
    if (!stays) unneeded.push_back(index);
  }
  for (const std::size_t index : unneeded) {
    total += entries[index].bytes;
    for (const SharedFile& one : entries[index].shared) {
      if (needed.count(one.inode) == 0 && ++holders[one.inode] == 1) total += one.bytes;
    }
  }
  std::stable_sort(unneeded.begin(), unneeded.end(), [&](std::size_t left, std::size_t right) {
    return entries[left].last_use_ns < entries[right].last_use_ns;
  });
  std::size_t count = 0;
  for (; count < unneeded.size() && total > bounds.max_bytes; ++count) {
    const BaseEntry& entry = entries[unneeded[count]];
    total -= entry.bytes;
    for (const SharedFile& one : entry.shared) {
      if (needed.count(one.inode) == 0 && --holders[one.inode] == 0) total -= one.bytes;
    }
  }
  unneeded.resize(count);
  return unneeded;
}

Result<Eviction> evict_bases(const std::string& state_dir, const CacheBounds& bounds) {
  Eviction done;
  const std::string vault = state_dir + "/vault";
  if (!is_own_folder(vault)) return done;
  // One at a time: the leftovers of one are being removed by the other.
  TRY(const UniqueFd turn, open_file(vault + "/eviction-lock", O_RDWR | O_CREAT | O_NOFOLLOW));
  if (::flock(turn.get(), LOCK_EX | LOCK_NB) != 0) {
    done.elsewhere = true;
    return done;
  }
  TRY(done.leftovers, remove_leftovers(vault));
  TRY(const std::vector<BaseEntry> entries, list_bases(state_dir));
  for (const std::size_t index : choose_evicted(entries, bounds)) {
    TRY(const bool evicted, evict_one(vault, entries[index]));
    if (evicted) done.removed.push_back(entries[index]);
  }
  return done;
}

}  // namespace cofferdam::clone
