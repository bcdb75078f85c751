// From what a storage is to be to what its keeper does. Pure: what the host has to give comes as Sources.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "init/plan.h"
#include "workspace/metadata.h"

namespace cofferdam::workspace {

// A folder of the host, as the keeper reaches it: by its path, or by a mount that the supervisor has made
// (host_mount.h), which is then a descriptor of the keeper's.
struct Source {
  std::string path;
  int fd = 0;  // 0: by its path
  bool given() const { return fd != 0 || !path.empty(); }
};

enum class TreeForm {
  checkout,   // an empty folder, which a box fills
  overlay,    // a cached tree, with a layer above it for what is written
  read_only,  // a cached tree
  making,     // a folder of the vault that a box fills, to become a cached tree
  emptying,   // a slot, which a box empties
};
const char* tree_form_name(TreeForm form);  // as result.storage.tree has it

struct KeeperInput {
  std::uint64_t work_bytes = 0;
  std::uint64_t work_inodes = 0;
  // The disk that holds the work; not given: memory, bounded by the two above.
  Source disk;
  std::vector<MetadataFile> metadata;
  Source objects;  // folder with the base packs; not given: none
  Source image;    // the tree that the agent's box has as its root; not given: none
  TreeForm form = TreeForm::checkout;
  Source tree;       // unless it is a checkout
  int index_fd = 0;  // a descriptor of the keeper's: the tree's index; 0: none yet
  std::uint64_t index_bytes = 0;
  std::chrono::milliseconds linger{0};
};

plan::Plan plan_keeper(const KeeperInput& input);

}  // namespace cofferdam::workspace
