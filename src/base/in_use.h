// A folder that several processes use and one may remove: whoever uses it holds a shared lock (flock(2)) on a
// file in it, whose time is that of the last use; whoever removes it holds the lock alone, and first renames
// it away.
//
// Thread rules: free functions without state.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <optional>
#include <string>

#include "base/fd.h"
#include "base/file.h"
#include "base/result.h"

namespace cofferdam {

inline constexpr const char* kUseFile = "/in-use";    // below the folder
inline constexpr const char* kNewPrefix = ".new-";    // of a folder that is being made
inline constexpr const char* kGonePrefix = ".gone-";  // of one that is being removed

std::int64_t modified_ns(const struct stat& info);  // since 1970
// Now, with the full resolution of the clock (the kernel's own stamp is some milliseconds coarse): an
// eviction tells by this whether anybody has used the folder since it looked.
void mark_use(int lock);
// Nanoseconds since 1970; of a folder that nobody has used yet, its making. 0: it is not there.
std::int64_t last_use_ns(const std::string& folder);
// flock(2), however often a signal comes between. `shown` is for the message.
Status lock_waiting(int fd, int kind, const std::string& shown);
// The lock on the use file, which is made if there is none; nothing when somebody uses the folder, or it has
// gone.
std::optional<UniqueFd> lock_unused(const std::string& folder);
// A folder, and no symbolic link to one.
bool is_own_folder(const std::string& path);
// Removes a folder that a killed process was making or removing; false while somebody is at it.
Result<bool> remove_leftover(const std::string& folder);

// A new folder, named by kNewPrefix and locked, in which something is made that is then renamed to where it
// is used.
class Nursery {
 public:
  static Result<Nursery> create(const std::string& parent);
  const std::string& path() const { return folder_.path(); }

 private:
  Nursery(UniqueFd lock, TempDir folder) : lock_(std::move(lock)), folder_(std::move(folder)) {}
  UniqueFd lock_;
  TempDir folder_;
};

}  // namespace cofferdam
