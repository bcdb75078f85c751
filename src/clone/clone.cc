#include "clone/clone.h"

#include <fmt/core.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdio>
#include <vector>

#include "base/file.h"
#include "base/sha256.h"
#include "base/text.h"
#include "git/git.h"

namespace cofferdam::clone {
namespace {

using git::GitCall;

GitCall call_on(const Source& source, std::vector<std::string> args) {
  GitCall call;
  call.git_dir = source.git_dir;
  call.args = std::move(args);
  call.run_as = source.run_as;
  call.limits.out_bytes = 1U << 20U;
  return call;
}

bool is_git_dir(const std::string& path) {
  return exists(path + "/HEAD") && is_directory(path + "/objects") && is_directory(path + "/refs");
}

bool is_regular_file(const std::string& path) {
  struct stat info {};
  return ::lstat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode);
}

// The per-work-tree part of a git directory: it borrows objects and refs from the folder that commondir
// names.
bool is_linked_git_dir(const std::string& path) {
  return exists(path + "/HEAD") && exists(path + "/gitdir") && exists(path + "/commondir");
}

Error linked_work_tree(const std::string& path) {
  return make_error(Code::usage, path + " is a linked work tree or a submodule, which cannot be used yet",
                    "name the folder of the main work tree");
}

// As git looks for it: at every level first `.git`, then a bare repository.
Result<Source> find_git_dir(const std::string& start) {
  Source source;
  for (std::string at = start; !at.empty(); at.resize(at.rfind('/'))) {
    const std::string dot_git = at + "/.git";
    if (is_regular_file(dot_git) || is_linked_git_dir(at)) return linked_work_tree(at);
    if (is_directory(dot_git) && is_git_dir(dot_git)) {
      TRY(source.git_dir, real_path(dot_git));
      if (is_linked_git_dir(source.git_dir)) return linked_work_tree(at);
      source.work_tree = at;
      return source;
    }
    if (is_git_dir(at)) {
      source.git_dir = at;
      return source;
    }
  }
  return make_error(Code::usage, start + " is not in a git repository",
                    "name the folder of a git repository with --repo, or make one: git init && git commit");
}

// A tree or commit id, or an error that says why there is none.
Result<std::string> parse_id(const Source& source, const std::string& expression) {
  TRY(std::string out,
      git::run_git(call_on(source, {"rev-parse", "--verify", "--end-of-options", expression})));
  std::string id(trim(out));
  if (!is_object_id(id)) return make_error(Code::protocol, "git rev-parse printed no object id");
  return id;
}

Error incomplete(const Source& source, const std::string& why) {
  return make_error(Code::not_found,
                    fmt::format("the history of {} is not complete: {}", source.git_dir, why),
                    "fetch what is missing first: git fetch --unshallow, or for a partial clone git fetch "
                    "--refetch --no-filter");
}

Status check_commit(const Source& source, const std::string& head) {
  if (!is_object_id(head)) return make_error(Code::usage, "the head must be a full commit id");
  GitCall call = call_on(source, {"cat-file", "--batch-check=%(objecttype)"});
  const std::string line = head + "\n";
  call.input = line;
  TRY(std::string out, git::run_git(call));
  const std::string type(trim(out));
  if (type == head + " missing") {
    return make_error(Code::not_found, fmt::format("{} has no commit {}", source.git_dir, head));
  }
  if (type != "commit") {
    return make_error(Code::usage, fmt::format("{} is a {}, not a commit", head, printable(type, 40)));
  }
  return {};
}

Result<contract::CloneIdentity> identify(const Source& source, const contract::CloneRequest& request) {
  TRY_VOID(check_commit(source, request.head));
  contract::CloneIdentity identity;
  identity.repository = source.git_dir;
  identity.head = request.head;
  identity.base = request.head;
  identity.history = request.history;
  identity.object_format = source.object_format;
  auto tree = parse_id(source, request.head + "^{tree}");
  if (!tree) return incomplete(source, tree.error().what);
  identity.tree = *tree;
  if (request.tree.has_value() && *request.tree != identity.tree) {
    return make_error(Code::usage, fmt::format("the tree of {} is {}, not {}", identity.head, identity.tree,
                                               printable(*request.tree, 80)));
  }
  std::string bytes = identity.repository;
  bytes.push_back('\0');
  bytes += identity.head;
  bytes.push_back('\0');
  bytes += identity.tree;
  identity.id = sha256_hex(bytes);
  return identity;
}

// The pack in a base folder; Code::not_found when it is not there in full.
Result<contract::BasePacks> base_packs_in(const std::string& folder) {
  contract::BasePacks found;
  found.objects_dir = folder + "/objects";
  const std::string packs = found.objects_dir + "/pack";
  if (!is_directory(packs)) return make_error(Code::not_found, "no base pack in " + folder);
  TRY(std::vector<std::string> names, list_dir(packs));
  // The folder came into being by one rename, so two files are the two of one pack.
  if (names.size() != 2 ||
      names[0].substr(0, names[0].rfind('.')) != names[1].substr(0, names[1].rfind('.'))) {
    return make_error(Code::internal, packs + " does not hold exactly one pack", "remove " + folder);
  }
  for (const std::string& name : names) {
    std::string path = packs;
    path.append("/").append(name);
    struct stat info {};
    if (::stat(path.c_str(), &info) != 0) return sys_error(path, errno);
    found.bytes += static_cast<std::uint64_t>(info.st_size);
    if (name.ends_with(".pack")) found.packs.push_back(path);
  }
  if (found.packs.size() != 1) {
    return make_error(Code::internal, packs + " does not hold a pack and its index", "remove " + folder);
  }
  return found;
}

// Fills the bare repository `store` with exactly what `head` reaches. No fsck: the user's history is what it
// is, and old histories with odd author lines must still work.
Status fill(const Source& source, const std::string& head, const std::string& store) {
  GitCall from = call_on(source, {"pack-objects", "--revs", "--stdout", "--delta-base-offset", "-q"});
  const std::string line = head + "\n";
  from.input = line;
  from.limits.time = std::chrono::minutes(60);
  GitCall into;
  into.git_dir = store;
  into.args = {"index-pack", "--stdin"};
  into.limits.time = from.limits.time;
  auto printed = git::pipe_git(from, into);
  if (printed) return {};
  const std::string& what = printed.error().what;
  const bool reading = starts_with(what, "git pack-objects: ");
  const bool stopped = what.find("signal") != std::string::npos || printed.error().code != Code::io;
  if (reading && !stopped) return incomplete(source, what);
  return std::move(printed).error();
}

// A box runs as somebody else and must read what is mounted into it; the vault above stays ours alone.
Status make_readable(const std::string& store) {
  for (const char* folder : {"/objects", "/objects/info", "/objects/pack"}) {
    if (::chmod((store + folder).c_str(), 0755) != 0) return sys_error(store + folder, errno);
  }
  TRY(std::vector<std::string> names, list_dir(store + "/objects/pack"));
  for (const std::string& name : names) {
    std::string path = store;
    path.append("/objects/pack/").append(name);
    if (::chmod(path.c_str(), 0444) != 0) return sys_error(path, errno);
  }
  return {};
}

// Of one repository: its base packs are below.
std::string repository_folder(const std::string& vault_dir, const std::string& git_dir) {
  return vault_dir + "/" + sha256_hex(git_dir).substr(0, 16);
}

// Puts a base pack at `final_folder`, unless somebody else was first.
Status make_base_pack(const Source& source, const std::string& head, const std::string& final_folder) {
  const std::string parent = final_folder.substr(0, final_folder.rfind('/'));
  TRY_VOID(make_dirs(parent));
  TRY(const BaseNursery nursery, BaseNursery::create(parent));
  const std::string made = nursery.path() + "/base";
  TRY_VOID(git::create_bare(made, source.object_format));
  TRY_VOID(fill(source, head, made));
  TRY_VOID(make_readable(made));
  TRY(const BaseUse new_one, use_base(made));
  // Whoever renames first wins; the others find a folder that is not empty and use it.
  if (::rename(made.c_str(), final_folder.c_str()) != 0 && errno != ENOTEMPTY && errno != EEXIST) {
    return sys_error("cannot put the base pack in place: " + final_folder, errno);
  }
  return {};
}

// The vault's folders are named by digests; people want to read where a pack came from. Nothing else does, so
// that it cannot be written (another process is writing it) is no error.
void record_origin(const Source& source, const std::string& folder) {
  const std::string path = folder + "/repository";
  if (!exists(path) && make_dirs(folder)) (void)write_file_atomic(path, source.git_dir).has_value();
}

// Finds the base pack, or makes it, and holds it.
Status take_base(const Source& source, const std::string& head, const std::string& folder, Cloned* cloned) {
  // An eviction can come between the making and the use, but hardly twice.
  constexpr int kMaxTries = 10;
  for (int tries = 0; tries < kMaxTries; ++tries) {
    auto use = use_base(folder);
    if (use) {
      TRY(cloned->packs, base_packs_in(folder));
      cloned->use = *std::move(use);
      return {};
    }
    if (use.error().code != Code::not_found) return std::move(use).error();
    TRY_VOID(make_base_pack(source, head, folder));
  }
  return make_error(Code::conflict, folder + " was evicted as often as it was made",
                    "raise cache.max_bytes in the configuration");
}

}  // namespace

Result<Source> open_source(const std::string& path) {
  auto start = real_path(path);
  if (!start) {
    return make_error(Code::usage, printable(path, 500) + " is not there or cannot be read",
                      "name the folder of a git repository");
  }
  TRY(Source source, find_git_dir(*start));
  TRY(source.run_as, git::run_as_owner(source.git_dir));
  auto format = git::run_git(call_on(source, {"rev-parse", "--show-object-format"}));
  if (!format) {
    return make_error(Code::usage, format.error().with(source.git_dir).what,
                      "this git must be able to read the repository");
  }
  source.object_format = std::string(trim(*format));
  if (source.object_format != "sha1" && source.object_format != "sha256") {
    return make_error(Code::usage, source.git_dir + ": unknown object format");
  }
  return source;
}

Result<std::string> resolve_commit(const Source& source, const std::string& revision) {
  auto id = parse_id(source, revision + "^{commit}");
  if (id) return id;
  // Code::timeout and the like are what they are; what git did not understand is the request's fault.
  if (id.error().code != Code::io) return id;
  if (revision == "HEAD") {
    return make_error(Code::usage, source.git_dir + ": there is no commit yet", "make one first: git commit");
  }
  return make_error(Code::usage,
                    fmt::format("{} has no commit '{}'", source.git_dir, printable(revision, 200)),
                    "name a branch, a tag or a commit id of that repository");
}

Result<Cloned> clone_head(const Source& source, const contract::CloneRequest& request,
                          const std::string& vault_dir) {
  Cloned cloned;
  TRY(cloned.identity, identify(source, request));
  TRY(std::string shallow, git::run_git(call_on(source, {"rev-parse", "--is-shallow-repository"})));
  if (trim(shallow) != "false") return incomplete(source, "it is a shallow clone");
  const std::string folder = repository_folder(vault_dir, source.git_dir);
  record_origin(source, folder);
  TRY_VOID(take_base(source, request.head, folder + "/base/" + request.head, &cloned));
  return cloned;
}

Result<Cloned> find_clone(const contract::CloneIdentity& identity, const std::string& vault_dir) {
  if (!is_object_id(identity.head)) return make_error(Code::internal, "a clone without a full head");
  Cloned cloned;
  cloned.identity = identity;
  const std::string folder = repository_folder(vault_dir, identity.repository) + "/base/" + identity.head;
  TRY(cloned.use, use_base(folder));
  TRY(cloned.packs, base_packs_in(folder));
  return cloned;
}

}  // namespace cofferdam::clone
