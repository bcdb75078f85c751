// What the clone stage hands on: which commit of which repository, and the packs of exactly what it reaches.
#pragma once

#include <string>

namespace cofferdam::contract {

// Never a branch name. `id` is the SHA-256 over repository, head and tree.
struct CloneIdentity {
  std::string repository;     // canonical path of the git directory (the common one of linked work trees)
  std::string head;           // full commit id
  std::string tree;           // full tree id of head
  std::string object_format;  // "sha1" or "sha256"
  std::string id;
  bool operator==(const CloneIdentity&) const = default;
};

// One pack in Cofferdam's vault whose content is exactly what `head` reaches.
struct BasePack {
  std::string objects_dir;  // the vault's object folder that holds only this pack
  std::string pack_path;
  std::string index_path;
  unsigned long long bytes = 0;  // pack and index together
};

}  // namespace cofferdam::contract
