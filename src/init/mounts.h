// Interprets the mount steps of a plan. Everything is relative to the calling process' own mount namespace.
#pragma once

#include <string>
#include <vector>

#include "init/plan.h"

namespace cofferdam::init {

// No mount event crosses between this namespace and any other from here on: mount_namespaces(7).
void make_private();
// Executes the steps with `root` (an absolute path, or empty) in front of every `b`. Returns why a work tree
// could not be an overlay; empty otherwise.
std::string build_tree(const std::vector<plan::Op>& ops, const std::string& root);
// Makes `new_root` the root; the old root stays at `old_inside` below it, or is detached when that is null.
void change_root(const char* new_root, const char* old_inside);
// The bind step of `op` at `target`: for other files of ours.
void bind_source(const plan::Op& op, const std::string& target);
void set_read_only(const char* path, bool recursive);
// Takes nosuid off the one mount: only a box of the gate's has such a one.
void allow_set_id(const char* path);
// Hides files (by /dev/null) and folders (by an empty read-only tmpfs); missing paths are skipped.
void mask(const std::vector<std::string>& paths);
void protect(const std::vector<std::string>& paths);  // binds each over itself, read-only

}  // namespace cofferdam::init
