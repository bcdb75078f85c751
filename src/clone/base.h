// The making of base folders: which packs are a base's, where they come from, and what is beside them.
//
// A base folder is a bare repository of ours: packs under objects/pack, `shallow` (gitrepository-layout(5))
// when the history is cut, and `facts`, what was counted in its tree. A base whose ancestor is in the vault
// has hard links to that one's packs and one pack of what is new, so that it stands on its own feet:
// whichever of the two is evicted, the other stays whole.
//
// Thread rules: free functions; any number of processes may make the same base at once.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "clone/cache.h"
#include "clone/source.h"
#include "contract/clone.h"

namespace cofferdam::clone {

// With more packs than this below it, a base is packed anew.
inline constexpr std::size_t kMaxAncestorPacks = 7;

struct BaseWish {
  std::string parent;  // "<vault>/<repository>/base"
  std::string name;    // base_name()
  std::string object_format;
  std::string tip;                   // the commit that the box works on
  std::vector<std::string> shallow;  // where its history is cut
  git::GitCall packer;               // reads the objects: who and where; the verb is ours
  std::string ancestor = {};         // of the tip; its base is linked when `ancestor_name` is there
  std::string ancestor_name = {};
};

// "<head>[-work-<base>][-none | -shallow-<digest of where it is cut>]".
std::string base_name(const contract::CloneIdentity& identity, const std::vector<std::string>& shallow);

// The folder of a repository's bases in the vault.
std::string bases_of(const std::string& vault_dir, const std::string& git_dir);

// Puts the base in place, unless somebody else was first.
Status make_base(const BaseWish& wish);

// The packs in a base folder, and where its history is cut. Code::not_found when they are not there in full.
Result<contract::BasePacks> packs_in(const std::string& folder);

// A base in the vault whose head is an ancestor of wish->tip, as the wish's ancestor: the newest first, a few
// tries. None is no error.
void choose_ancestor(const Source& source, BaseWish* wish);

// Gitlinks and files under the lfs filter in `tree`: counted once, kept in the base folder.
Status tree_facts(const std::string& folder, const std::string& tree, contract::SourceFacts* facts);

}  // namespace cofferdam::clone
