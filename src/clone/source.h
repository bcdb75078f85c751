// The user's repository: found by git itself, named explicitly from then on, and only read. Every git that
// looks at it runs as the owner of its git directory.
//
// Thread rules: values and free functions without state.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/process.h"
#include "base/result.h"
#include "contract/clone.h"
#include "git/git.h"

namespace cofferdam::clone {

// A repository of the user's, found but not changed.
struct Source {
  std::string git_dir;  // canonical; where objects and branches are, also for a linked work tree
  // Where HEAD and the index are: git_dir, but for a linked work tree.
  std::string head_dir;
  std::string work_tree;      // canonical; empty for a bare repository, and when a git directory was named
  std::string object_format;  // "sha1" or "sha256"
  std::optional<UserIds> run_as = {};  // the owner, when git must not run as us
  std::string kind;                    // as in contract::SourceFacts
  bool shallow = false;
  bool partial = false;
  int stop_fd = -1;  // readable, or at its end: gits on it end with Code::conflict. Borrowed
};

// `path` is a work tree (linked ones and submodules too), a folder below one, or a git directory.
// Code::usage, with what to do instead, when it is none or in a format that cannot be read; Code::denied when
// root is asked to act for one user on the repository of another.
Result<Source> open_source(const std::string& path);

// The full id of the commit that `revision` names. Code::usage when there is no commit yet or no such
// revision; Code::not_found when its object is missing.
Result<std::string> resolve_commit(const Source& source, const std::string& revision = "HEAD");

// A git on the source's objects and branches, as the owner.
git::GitCall call_on(const Source& source, std::vector<std::string> args);

// The commits within reach of `head` whose parents the source does not have; empty for a complete history.
Result<std::vector<std::string>> shallow_boundary(const Source& source, const std::string& head);

// Code::not_found: objects are missing, with the command that fetches them.
Error incomplete(const Source& source, const std::string& why);

}  // namespace cofferdam::clone
