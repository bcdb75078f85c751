#include "clone/base.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>

#include "base/file.h"
#include "base/in_use.h"
#include "base/sha256.h"
#include "base/text.h"
#include "contract/vault.h"

namespace cofferdam::clone {
namespace {

constexpr std::chrono::minutes kPackTime{60};
constexpr std::size_t kMaxShallowBytes = 64U << 20U;
constexpr std::size_t kMaxListing = 256U << 20U;  // of one tree
constexpr int kMaxAncestorTries = 4;

std::string pack_file(const std::string& folder, const std::string& name) {
  std::string path = folder;
  return path.append("/objects/pack/").append(name);
}

// The tip and all that it reaches down to where the history is cut, but for what the ancestor reaches.
// No fsck: the user's history is what it is, and old histories with odd author lines must still work.
Status fill(const BaseWish& wish, bool on_ancestor, const std::string& store) {
  git::GitCall from = wish.packer;
  from.args = {"pack-objects", "--revs", "--stdout", "--delta-base-offset", "-q"};
  std::string lines;
  for (const std::string& id : wish.shallow) lines.append("--shallow ").append(id).append("\n");
  lines.append(wish.tip).append("\n");
  if (on_ancestor) lines.append("^").append(wish.ancestor).append("\n");
  from.input = lines;
  from.limits.time = kPackTime;
  git::GitCall into;
  into.git_dir = store;
  into.args = {"index-pack", "--stdin"};
  into.limits.time = kPackTime;
  into.wait = wish.packer.wait;
  TRY(const std::string printed, git::pipe_git(from, into));
  (void)printed;
  return {};
}

// False when one of them cannot be linked: it has too many links already, or has just been evicted.
Result<bool> link_packs(const BaseWish& wish, const std::string& store) {
  const std::string folder = wish.parent + "/" + wish.ancestor_name;
  const auto use = use_base(folder);
  if (!use) return false;
  TRY(const std::vector<std::string> names, list_dir(folder + "/objects/pack"));
  for (const std::string& name : names) {
    if (::link(pack_file(folder, name).c_str(), pack_file(store, name).c_str()) == 0) continue;
    TRY(const std::vector<std::string> linked, list_dir(store + "/objects/pack"));
    for (const std::string& one : linked) ::unlink(pack_file(store, one).c_str());
    return false;
  }
  return true;
}

// A box runs as somebody else and must read what is mounted into it; the vault above stays ours alone.
Status make_readable(const std::string& store) {
  for (const char* folder : {"/objects", "/objects/info", "/objects/pack"}) {
    const std::string path = store + folder;
    if (::chmod(path.c_str(), 0755) != 0) return sys_error(path, errno);
  }
  TRY(const std::vector<std::string> names, list_dir(store + "/objects/pack"));
  for (const std::string& name : names) {
    const std::string path = pack_file(store, name);
    if (::chmod(path.c_str(), 0444) != 0) return sys_error(path, errno);
  }
  return {};
}

Status write_shallow(const std::string& store, const std::vector<std::string>& shallow) {
  if (shallow.empty()) return {};
  std::string text;
  for (const std::string& id : shallow) text.append(id).append("\n");
  return write_file_atomic(store + "/shallow", text);
}

std::string base_at(const BaseWish& wish, const std::string& name) {
  std::string folder = wish.parent;
  return folder.append("/").append(name);
}

git::GitCall on_store(const std::string& store, std::vector<std::string> args) {
  git::GitCall call = git::call_in(store, std::move(args));
  call.limits.out_bytes = kMaxListing;
  return call;
}

// Whether any attributes file of the tree names the filter: most trees need no further look.
Result<bool> mentions_lfs(const std::string& store, const std::string& files) {
  git::GitCall read = on_store(store, {"cat-file", "--batch"});
  read.input = files;
  TRY(const std::string texts, git::run_git(read));
  return texts.find("filter=lfs") != std::string::npos;
}

Result<std::uint64_t> count_lfs(const std::string& store, const std::string& tree, const std::string& paths) {
  const std::string index = store + "/index-" + random_hex(8);
  git::GitCall fill_index = on_store(store, {"read-tree", tree});
  fill_index.extra_env = {"GIT_INDEX_FILE=" + index};
  TRY(const std::string silence, git::run_git(fill_index));
  (void)silence;
  git::GitCall ask = on_store(store, {"check-attr", "--cached", "-z", "--stdin", "filter"});
  ask.extra_env = fill_index.extra_env;
  ask.input = paths;
  auto answer = git::run_git(ask);
  ::unlink(index.c_str());
  if (!answer) return std::move(answer).error();
  const std::vector<std::string> words = split(*answer, '\0');
  std::uint64_t count = 0;
  for (std::size_t at = 2; at < words.size(); at += 3) count += words[at] == "lfs" ? 1U : 0U;
  return count;
}

Status count_tree(const std::string& store, const std::string& tree, contract::SourceFacts* facts) {
  TRY(const std::string listing, git::run_git(on_store(store, {"ls-tree", "-r", "-z", "--full-tree", tree})));
  std::string paths;
  std::string attribute_files;
  for (const std::string& entry : split(listing, '\0')) {
    const std::vector<std::string> words = split(entry.substr(0, entry.find('\t')), ' ');
    const std::string path = entry.substr(entry.find('\t') + 1);
    if (words.size() != 3) return make_error(Code::protocol, "git ls-tree printed no entry");
    if (words[1] == "commit") ++facts->submodules;
    if (words[1] != "blob") continue;
    paths.append(path).push_back('\0');
    if (path.substr(path.rfind('/') + 1) == ".gitattributes") attribute_files.append(words[2]).append("\n");
  }
  if (attribute_files.empty()) return {};
  TRY(const bool mentioned, mentions_lfs(store, attribute_files));
  if (!mentioned) return {};
  TRY(facts->lfs_files, count_lfs(store, tree, paths));
  return {};
}

}  // namespace

std::string base_name(const contract::CloneIdentity& identity, const std::vector<std::string>& shallow) {
  std::string name = identity.head;
  if (identity.base != identity.head) name.append("-work-").append(identity.base);
  if (identity.history == contract::History::none) return name.append("-none");
  if (shallow.empty()) return name;
  std::string bytes;
  for (const std::string& id : shallow) bytes.append(id).append("\n");
  return name.append("-shallow-").append(sha256_hex(bytes).substr(0, 16));
}

std::string bases_of(const std::string& vault_dir, const std::string& git_dir) {
  return contract::vault_folder(vault_dir, git_dir) + "/base";
}

Status make_base(const BaseWish& wish) {
  TRY_VOID(make_dirs(wish.parent));
  TRY(const Nursery nursery, Nursery::create(wish.parent));
  const std::string made = nursery.path() + "/base";
  TRY_VOID(git::create_bare(made, wish.object_format));
  bool on_ancestor = false;
  if (!wish.ancestor_name.empty()) {
    TRY(on_ancestor, link_packs(wish, made));
  }
  TRY_VOID(fill(wish, on_ancestor, made));
  TRY_VOID(write_shallow(made, wish.shallow));
  TRY_VOID(make_readable(made));
  TRY(const BaseUse new_one, use_base(made));
  const std::string place = wish.parent + "/" + wish.name;
  // Whoever renames first wins; the others find a folder that is not empty and use it.
  if (::rename(made.c_str(), place.c_str()) != 0 && errno != ENOTEMPTY && errno != EEXIST) {
    return sys_error("cannot put the base pack in place: " + place, errno);
  }
  return {};
}

Result<contract::BasePacks> packs_in(const std::string& folder) {
  contract::BasePacks found;
  found.objects_dir = folder + "/objects";
  const std::string packs = found.objects_dir + "/pack";
  if (!is_directory(packs)) return make_error(Code::not_found, "no base pack in " + folder);
  TRY(const std::vector<std::string> names, list_dir(packs));
  for (std::size_t at = 0; at < names.size(); ++at) {
    const std::string path = pack_file(folder, names[at]);
    struct stat info {};
    if (::stat(path.c_str(), &info) != 0) return sys_error(path, errno);
    found.bytes += static_cast<std::uint64_t>(info.st_size);
    if (!names[at].ends_with(".pack")) continue;
    // The folder came into being by one rename, with an index before each pack (list_dir sorts).
    if (at > 0 && contract::index_of(names[at]) == names[at - 1]) found.packs.push_back(path);
  }
  if (found.packs.empty() || found.packs.size() * 2 != names.size()) {
    return make_error(Code::internal, packs + " does not hold packs and their indexes", "remove " + folder);
  }
  if (!exists(folder + "/shallow")) return found;
  TRY(const std::string cut, read_file(folder + "/shallow", kMaxShallowBytes));
  for (const std::string& id : split(cut, '\n')) {
    if (!is_object_id(id))
      return make_error(Code::internal, "the list of cut commits is broken", "remove " + folder);
    found.shallow.push_back(id);
  }
  return found;
}

void choose_ancestor(const Source& source, BaseWish* wish) {
  auto names = list_dir(wish->parent);
  if (!names) return;
  std::vector<std::pair<std::int64_t, std::string>> candidates;
  for (const std::string& name : *names) {
    if (!is_object_id(name) || name.size() != wish->tip.size() || name == wish->tip) continue;
    candidates.emplace_back(-last_use_ns(base_at(*wish, name)), name);
  }
  std::sort(candidates.begin(), candidates.end());
  int tries = 0;
  for (const auto& [age, name] : candidates) {
    if (++tries > kMaxAncestorTries) return;
    const auto answer = git::try_git(call_on(source, {"merge-base", "--is-ancestor", name, wish->tip}));
    if (!answer || !answer->status.success()) continue;
    const auto packs = packs_in(base_at(*wish, name));
    if (!packs || packs->packs.size() > kMaxAncestorPacks) return;  // one pack is made of them all
    wish->ancestor = name;
    wish->ancestor_name = name;
    return;
  }
}

Status tree_facts(const std::string& folder, const std::string& tree, contract::SourceFacts* facts) {
  const std::string path = folder + "/facts";
  if (exists(path)) {
    TRY(const std::string text, read_file(path, 100));
    const std::vector<std::string> words = split(trim(text), ' ');
    if (words.size() == 2) {
      facts->submodules = std::strtoull(words[0].c_str(), nullptr, 10);
      facts->lfs_files = std::strtoull(words[1].c_str(), nullptr, 10);
      return {};
    }
  }
  TRY_VOID(count_tree(folder, tree, facts));
  // Not kept (another is just writing it): counted again the next time.
  (void)write_file_atomic(path, fmt::format("{} {}\n", facts->submodules, facts->lfs_files)).has_value();
  return {};
}

}  // namespace cofferdam::clone
