#include "clone/work_tree.h"

#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <set>
#include <vector>

#include "base/file.h"
#include "base/in_use.h"
#include "base/text.h"
#include "clone/base.h"

namespace cofferdam::clone {
namespace {

constexpr std::size_t kMaxListing = 256U << 20U;  // of paths
// With more than this that look changed, they are counted by their times alone: nobody waits for a count.
constexpr std::size_t kMaxCompared = 20'000;

// A bare repository of ours that the owner may write, and gits in it that see the user's work tree.
class Desk {
 public:
  // `bases` is a folder of ours in the vault.
  static Result<Desk> create(const Source& source, const std::string& bases) {
    Desk desk(source);
    if (source.run_as.has_value()) {
      TRY(TempDir folder, TempDir::create("/tmp", "cofferdam-work-tree-"));
      if (::chown(folder.path().c_str(), source.run_as->uid, source.run_as->gid) != 0) {
        return sys_error(folder.path(), errno);
      }
      desk.path_ = folder.path();
      desk.temporary_.emplace(std::move(folder));
    } else {
      TRY_VOID(make_dirs(bases));
      TRY(Nursery nursery, Nursery::create(bases));
      desk.path_ = nursery.path();
      desk.nursery_.emplace(std::move(nursery));
    }
    git::GitCall init =
        desk.call({"init", "--quiet", "--bare", "--template=", "--object-format=" + source.object_format});
    init.work_tree.clear();
    TRY_VOID(run(std::move(init)));
    return desk;
  }

  // On an index of ours; on the user's when no name is given, which is then only read.
  git::GitCall call(std::vector<std::string> args, const std::string& index = {}) const {
    git::GitCall call;
    call.git_dir = path_ + "/git";
    call.work_tree = source_.work_tree;
    call.args = std::move(args);
    call.run_as = source_.run_as;
    call.limits.out_bytes = kMaxListing;
    call.limits.stop_fd = source_.stop_fd;
    const std::string own = path_ + "/" + index;
    call.extra_env = {"GIT_INDEX_FILE=" + (index.empty() ? source_.head_dir + "/index" : own),
                      "GIT_ALTERNATE_OBJECT_DIRECTORIES=" + git::quoted_path(source_.git_dir + "/objects")};
    return call;
  }

  // For verbs that write objects: all of them are written here. With the user's in sight, git would touch the
  // times of those that are there already.
  git::GitCall writer(std::vector<std::string> args, const std::string& index) const {
    git::GitCall call = this->call(std::move(args), index);
    call.extra_env.pop_back();
    return call;
  }

  static Status run(git::GitCall call, std::string_view input = {}) {
    call.input = input;
    TRY(const std::string ignored, git::run_git(call));
    (void)ignored;
    return {};
  }

 private:
  explicit Desk(const Source& source) : source_(source) {}
  Source source_;
  std::string path_;
  // Where the owner may write; in the vault, where leftovers are removed, when that is us.
  std::optional<TempDir> temporary_;
  std::optional<Nursery> nursery_;
};

struct Entry {
  std::string mode;  // in the index, and the object there; "000000" when it is not in it
  std::string id;
  char status = ' ';
  std::string path;
};

// What diff-files and diff-index print with --raw -z (git-diff(1), RAW OUTPUT FORMAT). `from` is the column
// of the index: 0 on the left, 1 on the right.
Result<std::vector<Entry>> read_raw(const std::string& raw, std::size_t from) {
  std::vector<Entry> entries;
  const std::vector<std::string> parts = split(raw, '\0');
  for (std::size_t at = 0; at + 1 < parts.size(); at += 2) {
    const std::vector<std::string> words = split(parts[at], ' ');
    if (words.size() != 5 || words[0].empty() || words[4].empty()) {
      return make_error(Code::protocol, "git diff printed no entry");
    }
    const std::string mode = from == 0 ? words[0].substr(1) : words[1];
    entries.push_back({mode, words[2 + from], words[4][0], parts[at + 1]});
  }
  return entries;
}

struct Uncommitted {
  std::vector<Entry> staged;  // index against head
  std::vector<Entry> edited;  // work tree against index
  std::vector<std::string> untracked;

  std::set<std::string> tracked_paths() const {
    std::set<std::string> paths;
    for (const Entry& one : staged) paths.insert(one.path);
    for (const Entry& one : edited) paths.insert(one.path);
    return paths;
  }
};

std::string index_lines(const std::vector<Entry>& entries) {
  std::string lines;
  for (const Entry& one : entries) {
    lines.append(one.mode).append(" ").append(one.id).append("\t").append(one.path).push_back('\0');
  }
  return lines;
}

// Times tell git what may have changed; of those, content tells what has. In an index with only these, so
// that nothing else is read, and nothing is written to the user's.
Result<std::vector<Entry>> compare(const Desk& desk, std::vector<Entry> suspects) {
  if (suspects.empty() || suspects.size() > kMaxCompared) return suspects;
  std::vector<Entry> changed;
  for (const Entry& one : suspects) {
    if (one.mode == "000000") changed.push_back(one);  // git add -N: it has no content in the index
  }
  TRY_VOID(Desk::run(desk.call({"update-index", "-z", "--index-info"}, "suspects"), index_lines(suspects)));
  TRY(const Captured refreshed,
      git::try_git(desk.call({"update-index", "-q", "--unmerged", "--refresh"}, "suspects")));
  (void)refreshed;  // its status says only that some have changed
  TRY(const std::string raw, git::run_git(desk.call({"diff-files", "--raw", "-z", "--no-renames",
                                                     "--no-abbrev", "--ignore-submodules=all"},
                                                    "suspects")));
  TRY(const std::vector<Entry> differing, read_raw(raw, 0));
  changed.insert(changed.end(), differing.begin(), differing.end());
  return changed;
}

Result<std::vector<std::string>> list_untracked(const Source& source) {
  // The repository's own git directory: its info/exclude says what is ignored.
  git::GitCall call = call_on(source, {"ls-files", "--others", "--exclude-standard", "-z"});
  call.git_dir = source.head_dir;
  call.work_tree = source.work_tree;
  call.limits.out_bytes = kMaxListing;
  TRY(const std::string out, git::run_git(call));
  std::vector<std::string> paths;
  for (std::string& path : split(out, '\0')) {
    // A repository of its own inside this one is listed as a folder, and not entered.
    if (!path.ends_with("/")) paths.push_back(std::move(path));
  }
  return paths;
}

Result<Uncommitted> look(const Desk& desk, const Source& source, const std::string& head) {
  Uncommitted found;
  TRY(const std::string staged, git::run_git(desk.call({"diff-index", "--cached", "--raw", "-z",
                                                        "--no-renames", "--no-abbrev", head})));
  TRY(found.staged, read_raw(staged, 1));
  TRY(const std::string edited, git::run_git(desk.call({"diff-files", "--raw", "-z", "--no-renames",
                                                        "--no-abbrev", "--ignore-submodules=all"})));
  TRY(std::vector<Entry> suspects, read_raw(edited, 0));
  TRY(found.edited, compare(desk, std::move(suspects)));
  TRY(found.untracked, list_untracked(source));
  return found;
}

// There is something to look at: a work tree, and an index that says what is tracked.
bool has_index(const Source& source) {
  return !source.work_tree.empty() && exists(source.head_dir + "/index");
}

// A split index is read by the git directory that it belongs to alone (core.splitIndex in git-config(1)).
Status refuse_split_index(const Source& source) {
  auto names = list_dir(source.head_dir);
  if (!names) return {};
  const auto shared = std::find_if(names->begin(), names->end(),
                                   [](const std::string& name) { return starts_with(name, "sharedindex."); });
  if (shared == names->end()) return {};
  return make_error(Code::usage, "the index of " + source.work_tree + " is split in two",
                    fmt::format("make it one: git update-index --no-split-index, and remove {}/{}",
                                source.head_dir, *shared));
}

// Files under a filter of the user's have another content in git than in the work tree, and only that filter
// makes the one of the other. It is never run.
Status refuse_filtered(const Source& source, const std::string& paths) {
  git::GitCall call = call_on(source, {"check-attr", "-z", "--stdin", "filter"});
  call.git_dir = source.head_dir;  // its info/attributes counts too
  call.work_tree = source.work_tree;
  call.limits.out_bytes = kMaxListing;
  call.input = paths;
  TRY(const std::string out, git::run_git(call));
  const std::vector<std::string> words = split(out, '\0');
  for (std::size_t at = 0; at + 2 < words.size(); at += 3) {
    const std::string& filter = words[at + 2];
    if (filter == "unspecified" || filter == "unset" || filter == "set") continue;
    return make_error(Code::usage,
                      fmt::format("{} is changed and under the filter \"{}\", which Cofferdam does not run",
                                  printable(words[at], 300), printable(filter, 80)),
                      "commit or stage it first (git add), or leave --include-dirty out");
  }
  return {};
}

Status check_takable(const Source& source, const Uncommitted& found, bool untracked) {
  std::string paths;
  for (const Entry& one : found.edited) {
    if (one.status != 'D') paths.append(one.path).push_back('\0');
  }
  for (const Entry& one : found.staged) {
    if (one.status != 'U') continue;
    return make_error(Code::usage, printable(one.path, 300) + " is not merged yet",
                      "finish the merge first, or leave --include-dirty out");
  }
  if (untracked) {
    for (const std::string& path : found.untracked) paths.append(path).push_back('\0');
  }
  return refuse_filtered(source, paths);
}

Result<std::string> id_of(git::GitCall call, std::string_view input = {}) {
  call.input = input;
  TRY(const std::string out, git::run_git(call));
  std::string id(trim(out));
  if (!is_object_id(id)) return make_error(Code::protocol, "git printed no object id");
  return id;
}

// The head's tree with what is staged, what is edited, and what is untracked if that was asked for.
Result<std::string> write_tree(const Desk& desk, const Uncommitted& found, const WorkTreeWish& wish) {
  const std::string index = "index";
  TRY_VOID(Desk::run(desk.call({"read-tree", wish.head}, index)));
  TRY_VOID(Desk::run(desk.call({"update-index", "-z", "--index-info"}, index), index_lines(found.staged)));
  std::string paths;
  for (const Entry& one : found.edited) paths.append(one.path).push_back('\0');
  if (wish.untracked) {
    for (const std::string& path : found.untracked) paths.append(path).push_back('\0');
  }
  TRY_VOID(Desk::run(desk.writer({"update-index", "--add", "--remove", "--replace", "-z", "--stdin"}, index),
                     paths));
  return id_of(desk.writer({"write-tree", "--missing-ok"}, index));
}

Result<std::string> write_commit(const Desk& desk, const std::string& tree, const WorkTreeWish& wish) {
  git::GitCall call = desk.call({"commit-tree", tree, "-p", wish.head});
  for (std::string& entry : git::identity_env(wish.author_name, wish.author_email, wish.time.ms / 1000)) {
    call.extra_env.push_back(std::move(entry));
  }
  const std::string message =
      fmt::format("Uncommitted files on top of {}\n\nThe base of attempt {}, recorded by Cofferdam.\n",
                  wish.head, wish.attempt_id);
  return id_of(std::move(call), message);
}

// The base of the commit is that of the head and one pack more.
Result<BaseUse> put_in_vault(const Source& source, const Desk& desk, const WorkTreeWish& wish,
                             const contract::WorkTreeBase& made, const std::string& vault_dir) {
  contract::CloneRequest request;
  request.head = wish.head;
  request.history = wish.history;
  TRY(const Cloned head, clone_head(source, request, vault_dir));
  const std::string& objects = head.packs.objects_dir;
  const std::string folder = objects.substr(0, objects.rfind('/'));
  contract::CloneIdentity identity = head.identity;
  identity.base = made.commit;
  BaseWish base;
  base.parent = folder.substr(0, folder.rfind('/'));
  base.name = base_name(identity, head.packs.shallow);
  base.object_format = source.object_format;
  base.tip = made.commit;
  base.shallow = head.packs.shallow;
  base.packer = desk.call({});
  base.ancestor = wish.head;
  base.ancestor_name = folder.substr(folder.rfind('/') + 1);
  TRY_VOID(make_base(base));
  return use_base(base.parent + "/" + base.name);
}

}  // namespace

Status count_uncommitted(const Source& source, const std::string& bases, contract::SourceFacts* facts) {
  if (!has_index(source)) return {};
  TRY(const std::string head, resolve_commit(source));
  TRY(const Desk desk, Desk::create(source, bases));
  TRY(const Uncommitted found, look(desk, source, head));
  facts->dirty_files = found.tracked_paths().size();
  facts->untracked_files = found.untracked.size();
  return {};
}

Result<std::optional<WorkTreeCommit>> commit_work_tree(const Source& source, const WorkTreeWish& wish,
                                                       const std::string& vault_dir) {
  if (!has_index(source)) {
    return make_error(Code::usage, source.git_dir + " has no work tree whose files could be taken along",
                      "name the folder of the work tree with --repo, or leave --include-dirty out");
  }
  TRY_VOID(refuse_split_index(source));
  TRY(const Desk desk, Desk::create(source, bases_of(vault_dir, source.git_dir)));
  TRY(const Uncommitted found, look(desk, source, wish.head));
  TRY_VOID(check_takable(source, found, wish.untracked));
  TRY(const std::string before, id_of(desk.call({"rev-parse", wish.head + "^{tree}"}, "index")));
  WorkTreeCommit made;
  TRY(made.base.tree, write_tree(desk, found, wish));
  if (made.base.tree == before) return std::optional<WorkTreeCommit>();
  TRY(made.base.commit, write_commit(desk, made.base.tree, wish));
  TRY(made.use, put_in_vault(source, desk, wish, made.base, vault_dir));
  return std::optional<WorkTreeCommit>(std::move(made));
}

}  // namespace cofferdam::clone
