// What applying needs to know of the user's repository; read by git as its owner.
#pragma once

#include <string>

#include "base/result.h"
#include "handoff/apply.h"

namespace cofferdam::handoff {

struct UserRepository {
  std::string branch;  // full ref; empty when HEAD is detached
  std::string head;
  std::string tree;
  bool file_mode = true;
  bool symlinks = true;
  std::string autocrlf;    // "", "true", "false" or "input"
  std::string eol;         // "", "lf", "crlf" or "native"
  std::string hooks_path;  // below the work tree, relative to it; empty otherwise
  std::string attributes;  // of info/attributes
};

// Only the repository's own configuration counts: the caller's and the system's are never read.
Result<UserRepository> read_user_repository(const ApplyInput& input);
// Whether HEAD has that commit in its history.
Result<bool> has_in_history(const ApplyInput& input, const std::string& head, const std::string& commit);

}  // namespace cofferdam::handoff
