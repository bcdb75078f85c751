// The folder of ours in a git directory while something is applied: what is about to come, what had to go,
// the plan, and the lock that says whether somebody is at it. Undoing needs nothing else.
#pragma once

#include <optional>
#include <string>

#include "base/fd.h"
#include "base/result.h"
#include "handoff/place.h"

namespace cofferdam::handoff {

// Whether the branch came to where the plan was to bring it; it may have gone on from there.
Result<bool> has_moved(const Placement& placement);

class PlaceJournal {
 public:
  // Makes the folder and takes its lock; mends what a killed process left in it (`*mended` says what was
  // done). Code::conflict while somebody else is at it.
  static Result<PlaceJournal> open(const std::string& git_dir, std::string* mended);
  // Nothing when there is no such folder.
  static Result<std::optional<PlaceJournal>> find(const std::string& git_dir, std::string* mended);

  int fd() const { return folder_.get(); }
  std::string index() const { return path_ + "/index"; }  // the index that is to come
  static std::string new_name(std::size_t number) { return "new/" + std::to_string(number); }
  static std::string old_name(std::size_t number) { return "old/" + std::to_string(number); }

  // From here on a kill is mended by the plan.
  Status begin(const Placement& placement) const;
  // git's own lock on the index: Code::conflict when somebody has it.
  Status lock_index(const Placement& placement) const;
  // The new index in the place of the old one, and the lock given back.
  Status finish_index(const Placement& placement) const;
  // Everything back as it was; an error names what could not be put back, and where it is.
  Status undo(const Placement& placement) const;
  Status remove();

 private:
  PlaceJournal(std::string path, UniqueFd folder, UniqueFd lock)
      : path_(std::move(path)), folder_(std::move(folder)), lock_(std::move(lock)) {}
  static Result<PlaceJournal> lock(const std::string& path);
  Result<std::string> mend() const;
  bool owns_index_lock(const Placement& placement) const;
  Status undo_file(const Placement& placement, int work_tree, std::size_t number) const;

  std::string path_;
  UniqueFd folder_;
  UniqueFd lock_;
};

}  // namespace cofferdam::handoff
