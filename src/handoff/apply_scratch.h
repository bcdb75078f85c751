// A repository of ours in which a change is merged and its files are made as a checkout would, with no driver
// of anybody's: beside the objects of the attempt's store it has the tree of the user's HEAD.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/result.h"
#include "handoff/apply_user.h"

namespace cofferdam::handoff {

struct TreeEntry {
  std::string mode;  // "000000" for nothing
  std::string id;
  bool operator==(const TreeEntry&) const = default;
};
struct TreeChange {
  std::string path;
  TreeEntry before;
  TreeEntry after;
};

struct MergeOutcome {
  std::string tree;
  std::vector<Obstacle> conflicts;  // kind "conflict"
};

class ApplyScratch {
 public:
  static Result<ApplyScratch> create(const std::string& parent, const AttemptStore& store,
                                     const UserRepository& user);

  const std::string& git_dir() const { return git_dir_; }
  TempDir take_folder() && { return std::move(folder_); }

  Result<std::string> tree_of(const std::string& commit) const;
  Result<bool> is_ancestor(const std::string& older, const std::string& newer) const;
  // The objects of the user's tree beyond those of `base_head`.
  Status take_tree(const ApplyInput& input, const std::string& tree) const;
  // A three-way merge of trees: no history is asked for a base.
  Result<MergeOutcome> merge(const std::string& base_tree, const std::string& ours,
                             const std::string& theirs) const;
  Result<std::vector<TreeChange>> changes(const std::string& from, const std::string& to) const;
  // The files as they would stand in a work tree: path to the name of a file in our folder (for a link its
  // target is the content). Every path must be in the tree.
  Result<std::map<std::string, std::string>> check_out(const std::string& tree,
                                                       const std::vector<std::string>& paths) const;
  // The value of one attribute by path, as that tree and info/attributes say.
  Result<std::map<std::string, std::string>> attributes(const std::string& tree, const std::string& name,
                                                        const std::vector<std::string>& paths) const;

 private:
  explicit ApplyScratch(TempDir folder) : folder_(std::move(folder)), git_dir_(folder_.path() + "/git") {}
  Result<std::string> index_of(const std::string& tree) const;
  Result<std::string> root_commit(const std::string& tree, const std::string& parent) const;

  TempDir folder_;
  std::string git_dir_;
  std::vector<std::string> settings_;  // GIT_CONFIG_*: how text is written here
};

}  // namespace cofferdam::handoff
