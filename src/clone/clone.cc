#include "clone/clone.h"

#include <fmt/core.h>

#include <algorithm>
#include <vector>

#include "base/file.h"
#include "base/sha256.h"
#include "base/text.h"
#include "clone/base.h"
#include "clone/work_tree.h"
#include "git/git.h"

namespace cofferdam::clone {
namespace {

using contract::CloneIdentity;
using contract::CloneRequest;
using contract::History;

// The tree of a commit that must be there, with one question to git.
Result<std::string> tree_of(const Source& source, const std::string& head) {
  if (!is_object_id(head)) return make_error(Code::usage, "the head must be a full commit id");
  git::GitCall call = call_on(source, {"cat-file", "--batch-check=%(objecttype) %(objectname)"});
  const std::string asked = head + "\n" + head + "^{tree}\n";
  call.input = asked;
  TRY(const Captured answer, git::try_git(call));
  const std::vector<std::string> lines = split(answer.out, '\n');
  if (lines[0] == head + " missing") {
    return make_error(Code::not_found, fmt::format("{} has no commit {}", source.git_dir, head));
  }
  if (lines[0].empty()) return make_error(Code::io, "git cat-file: " + git::first_line(answer.err));
  const std::string type = lines[0].substr(0, lines[0].find(' '));
  if (type != "commit") {
    return make_error(Code::usage, fmt::format("{} is a {}, not a commit", head, printable(type, 40)));
  }
  // Of a partial clone git may end over the second question.
  if (lines.size() < 2 || !starts_with(lines[1], "tree ")) return incomplete(source, "the tree of " + head);
  std::string id = lines[1].substr(5);
  if (!is_object_id(id)) return make_error(Code::protocol, "git cat-file printed no object id");
  return id;
}

std::string identity_id(const CloneIdentity& identity) {
  std::string bytes = identity.repository;
  const auto add = [&bytes](const std::string& part) { bytes.append(1, '\0').append(part); };
  add(identity.head);
  if (identity.base != identity.head) add(identity.base);
  add(identity.tree);
  return sha256_hex(bytes);
}

Result<CloneIdentity> identify(const Source& source, const CloneRequest& request) {
  CloneIdentity identity;
  TRY(identity.tree, tree_of(source, request.head));
  identity.repository = source.git_dir;
  identity.head = request.head;
  identity.base = request.head;
  identity.history = request.history;
  identity.object_format = source.object_format;
  if (request.tree.has_value() && *request.tree != identity.tree) {
    return make_error(Code::usage, fmt::format("the tree of {} is {}, not {}", identity.head, identity.tree,
                                               printable(*request.tree, 80)));
  }
  if (request.work_tree.has_value()) {
    identity.base = request.work_tree->commit;
    identity.tree = request.work_tree->tree;
  }
  identity.id = identity_id(identity);
  return identity;
}

Error pack_failed(const Source& source, Error error) {
  const bool reading = starts_with(error.what, "git pack-objects: ");
  const bool stopped = error.what.find("signal") != std::string::npos || error.code != Code::io;
  if (reading && !stopped) return incomplete(source, error.what);
  return error;
}

// The vault's folders are named by digests; people want to read where a pack came from. Nothing else does, so
// that it cannot be written (another process is writing it) is no error.
void record_origin(const Source& source, const std::string& bases) {
  const std::string folder = bases.substr(0, bases.rfind('/'));
  const std::string path = folder + "/repository";
  if (!exists(path) && make_dirs(folder)) (void)write_file_atomic(path, source.git_dir).has_value();
}

// Finds the base of the head, or makes it, and holds it.
Status take_base(const Source& source, BaseWish wish, Cloned* cloned) {
  const std::string folder = wish.parent + "/" + wish.name;
  // An eviction can come between the making and the use, but hardly twice.
  constexpr int kMaxTries = 10;
  for (int tries = 0; tries < kMaxTries; ++tries) {
    auto use = use_base(folder);
    if (use) {
      TRY(cloned->packs, packs_in(folder));
      cloned->use = *std::move(use);
      return {};
    }
    if (use.error().code != Code::not_found) return std::move(use).error();
    if (wish.name == wish.tip) choose_ancestor(source, &wish);
    if (Status made = make_base(wish); !made) return pack_failed(source, std::move(made).error());
  }
  return make_error(Code::conflict, folder + " was evicted as often as it was made",
                    "raise cache.max_bytes in the configuration");
}

// The base that holds the caller's uncommitted files was made before the invocation, and only there.
Status find_work_tree_base(const CloneIdentity& identity, const std::string& folder, Cloned* cloned) {
  auto use = use_base(folder);
  if (!use && use.error().code == Code::not_found) {
    return make_error(Code::not_found,
                      fmt::format("the base {} of uncommitted files is not in the vault", identity.base),
                      "make a new invocation with --include-dirty");
  }
  if (!use) return std::move(use).error();
  TRY(cloned->packs, packs_in(folder));
  cloned->use = *std::move(use);
  git::GitCall call;
  call.git_dir = folder;
  call.args = {"rev-parse", "--revs-only", identity.base + "^{tree}", identity.base + "^1"};
  TRY(const std::string out, git::run_git(call));
  if (out == identity.tree + "\n" + identity.head + "\n") return {};
  return make_error(Code::usage, fmt::format("the base {} is not the tree {} on top of {}", identity.base,
                                             identity.tree, identity.head));
}

// The folder of an identity whose source is not looked at: where a shallow history was cut is not in it.
std::string find_folder(const CloneIdentity& identity, const std::string& bases) {
  const std::string name = base_name(identity, {});
  if (is_directory(bases + "/" + name) || identity.history == History::none) return bases + "/" + name;
  if (auto names = list_dir(bases)) {
    const std::string prefix = name + "-shallow-";
    const auto found = std::find_if(names->begin(), names->end(),
                                    [&](const std::string& one) { return starts_with(one, prefix); });
    if (found != names->end()) return bases + "/" + *found;
  }
  return bases + "/" + name;
}

}  // namespace

Result<Cloned> clone_head(const Source& source, const CloneRequest& request, const std::string& vault_dir,
                          const git::Waiter& wait) {
  Cloned cloned;
  TRY(cloned.identity, identify(source, request));
  std::vector<std::string> cut;
  if (request.history == History::none) {
    cut = {request.head};
  } else {
    TRY(cut, shallow_boundary(source, request.head));
  }
  const std::string bases = bases_of(vault_dir, source.git_dir);
  const std::string name = base_name(cloned.identity, cut);
  record_origin(source, bases);
  if (request.work_tree.has_value()) {
    TRY_VOID(find_work_tree_base(cloned.identity, bases + "/" + name, &cloned));
    return cloned;
  }
  BaseWish wish{bases, name, source.object_format, request.head, cut, call_on(source, {})};
  wish.packer.wait = wait;
  TRY_VOID(take_base(source, std::move(wish), &cloned));
  return cloned;
}

Result<Cloned> find_clone(const CloneIdentity& identity, const std::string& vault_dir) {
  if (!is_object_id(identity.head) || !is_object_id(identity.base)) {
    return make_error(Code::internal, "a clone without a full head");
  }
  Cloned cloned;
  cloned.identity = identity;
  const std::string folder = find_folder(identity, bases_of(vault_dir, identity.repository));
  TRY(cloned.use, use_base(folder));
  TRY(cloned.packs, packs_in(folder));
  return cloned;
}

Result<contract::SourceFacts> source_facts(const Source& source, const CloneIdentity& identity,
                                           const contract::BasePacks& packs) {
  contract::SourceFacts facts;
  facts.kind = source.kind;
  facts.shallow = source.shallow;
  facts.partial = source.partial;
  const std::string& objects = packs.objects_dir;
  const std::string folder = objects.substr(0, objects.rfind('/'));
  Status counted = count_uncommitted(source, folder.substr(0, folder.rfind('/')), &facts);
  if (!counted && counted.error().code == Code::conflict) return std::move(counted).error();
  (void)tree_facts(folder, identity.tree, &facts).has_value();
  return facts;
}

}  // namespace cofferdam::clone
