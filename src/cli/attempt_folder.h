// What is kept of an attempt beside its record: its folder, found so that nothing else can be meant, and
// removed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/fd.h"
#include "base/result.h"

namespace cofferdam::cli {

class AttemptFolder {
 public:
  // nullopt when there is none. Code::denied when what has its place is not a folder of ours: a symbolic
  // link, a file, somebody else's. Code::conflict while another process works on the attempt (a recovery).
  static Result<std::optional<AttemptFolder>> open(const std::string& state_dir, const std::string& id);

  std::uint64_t bytes() const { return bytes_; }
  bool has_store() const { return has_store_; }
  // Renames it away first: nobody finds half of it.
  Status remove();

 private:
  AttemptFolder() = default;
  std::string id_;
  UniqueFd parent_;
  UniqueFd folder_;
  UniqueFd lock_;
  std::uint64_t bytes_ = 0;
  bool has_store_ = false;
};

// What removals have left that were killed.
Status remove_folder_leftovers(const std::string& state_dir);

}  // namespace cofferdam::cli
