// Files of a work tree, never through a symbolic link and never outside of it (openat2(2)).
#pragma once

#include <cstdint>
#include <string>

#include "base/fd.h"
#include "base/result.h"

namespace cofferdam::handoff {

// A path that git could have in a tree: relative, no empty component, none of ".", ".." and ".git" in any
// case.
bool is_plain_path(const std::string& path);
// The folder that `path` is in, opened for the *at() calls. Code::not_found when it is not there, or when
// something else, such as a link, is in its place.
Result<UniqueFd> open_parent(int root, const std::string& path);
// The same, and makes what is missing.
Result<UniqueFd> make_parent(int root, const std::string& path);
// The last component.
std::string name_in(const std::string& path);
// As fingerprint() has it; "d" for a folder, "?" for what is neither file nor link, "-" for nothing.
Result<std::string> fingerprint_at(int root, const std::string& path);
// renameat2(2), over nothing: Code::conflict when something is there.
Status move_beneath(int from_root, const std::string& from, int to_root, const std::string& to);
// The folders that `path` was in, from the last one on, as long as they are empty.
void remove_empty_parents(int root, const std::string& path);

}  // namespace cofferdam::handoff
