// Files and folders of ours. Nothing here is used on what an agent could have written.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace cofferdam {

Result<std::string> read_file(const std::string& path, std::size_t max_bytes);
// Temporary file, fsync(2), rename(2): readers see the old or the new file, never a half.
Status write_file_atomic(const std::string& path, std::string_view bytes, unsigned mode = 0600);
Status make_dirs(const std::string& path, unsigned mode = 0700);  // parents too; an existing folder is fine
Status make_new_dir(const std::string& path, unsigned mode = 0700);  // Code::conflict when it exists
bool exists(const std::string& path);
// Whether `path` is still what `fd` was opened as: stat(2), links are not followed.
bool is_still_at(int fd, const std::string& path);
bool is_directory(const std::string& path);
Result<std::vector<std::string>> list_dir(const std::string& path);  // names, sorted, without . and ..
// Removes a tree of ours. Symbolic links are removed, never followed. A missing tree is fine.
Status remove_tree(const std::string& path);
// What a tree takes on the disk. Symbolic links are counted, never followed; a file with several names in it
// counts once; what goes meanwhile does not.
Result<std::uint64_t> tree_bytes(const std::string& path);
Result<std::string> real_path(const std::string& path);  // realpath(3)
// The folder of the running executable.
Result<std::string> executable_dir();

// A fresh folder, removed with everything in it by the destructor.
class TempDir {
 public:
  static Result<TempDir> create(const std::string& parent, const std::string& prefix);
  TempDir(TempDir&& other) noexcept : path_(std::move(other.path_)) { other.path_.clear(); }
  TempDir& operator=(TempDir&& other) noexcept;
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  ~TempDir();
  const std::string& path() const { return path_; }

 private:
  explicit TempDir(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

}  // namespace cofferdam
