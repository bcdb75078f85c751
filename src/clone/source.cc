#include "clone/source.h"

#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>

#include "base/file.h"
#include "base/text.h"

namespace cofferdam::clone {
namespace {

constexpr std::size_t kMaxAnswer = 1U << 20U;     // of verbs that print a few lines
constexpr std::size_t kMaxBoundary = 64U << 20U;  // of the commits at the end of a shallow history

// Whether git's search ends at this `.git`: it is the git directory that was found, or a file that names it
// (git does not go on behind one that names nothing). An empty folder of that name is passed over.
bool ends_search(const std::string& dot_git, const std::string& found) {
  struct stat info {};
  if (::stat(dot_git.c_str(), &info) != 0) return false;
  if (S_ISREG(info.st_mode)) return true;
  const auto resolved = real_path(dot_git);
  return resolved && *resolved == found;
}

Error not_readable(const std::string& start, std::string_view said) {
  if (said.find("refstorage") != std::string_view::npos) {
    return make_error(Code::usage, "the repository of " + start + " keeps its branches as reftables",
                      "migrate it first: git refs migrate --ref-format=files");
  }
  if (said.find("not a git repository") != std::string_view::npos) {
    return make_error(Code::usage, start + " is not in a git repository",
                      "name the folder of a git repository with --repo, or make one: git init && git commit");
  }
  std::string why(trim(said));
  if (starts_with(why, "fatal: ")) why.erase(0, 7);
  return make_error(Code::usage, start + ": " + printable(why, 500),
                    "this git must be able to read the repository");
}

// Found by git, as the owner of the folder that was named: a `.git` file or link takes us no further than its
// owner could go.
Status discover(const std::string& start, const std::optional<UserIds>& asker, Source* source) {
  git::GitCall call;
  call.discover_in = start;
  call.args = {"rev-parse",
               "--path-format=absolute",
               "--absolute-git-dir",
               "--git-common-dir",
               "--is-bare-repository",
               "--show-object-format",
               "--is-shallow-repository"};
  call.limits.out_bytes = kMaxAnswer;
  call.run_as = asker;
  TRY(const Captured answer, git::try_git(call));
  if (!answer.status.success()) return not_readable(start, answer.err);
  const std::vector<std::string> lines = split(trim(answer.out), '\n');
  if (lines.size() != 5) {
    return make_error(Code::usage, "the repository of " + start + " has a line end in its path", "rename it");
  }
  TRY(source->head_dir, real_path(lines[0]));
  TRY(source->git_dir, real_path(lines[1]));
  source->kind = lines[2] == "true" ? "bare" : "work-tree";
  source->object_format = lines[3];
  source->shallow = lines[4] == "true";
  if (source->object_format != "sha1" && source->object_format != "sha256") {
    return make_error(Code::usage, source->git_dir + ": unknown object format");
  }
  return {};
}

// The first folder from `start` up that has a `.git`: where git starts its search. What the repository
// configures as its work tree does not count.
void find_work_tree(const std::string& start, Source* source) {
  for (std::string at = start; !at.empty(); at.resize(at.rfind('/'))) {
    if (at == source->head_dir || at == source->git_dir) break;
    if (ends_search(at + "/.git", source->head_dir)) {
      source->work_tree = at;
      break;
    }
  }
  if (source->head_dir != source->git_dir) {
    source->kind = "linked-work-tree";
  } else if (!source->work_tree.empty()) {
    const bool inside = source->git_dir == source->work_tree + "/.git";
    const bool module = !inside && source->git_dir.find("/modules/") != std::string::npos;
    source->kind = module ? "submodule" : "work-tree";
  }
}

// As whom root acts: the owner of the folder that was named, looked at once and without following a link. A
// path that leads through another user's folder can mean something else at every look, so root does not act
// as itself there.
Result<std::optional<UserIds>> find_asker(const std::string& start) {
  std::optional<UserIds> asker;
  if (::geteuid() != 0) return asker;
  struct stat info {};
  if (::lstat(start.c_str(), &info) != 0) return sys_error(start, errno);
  if (info.st_uid != 0) {
    asker = UserIds{info.st_uid, info.st_gid};
    return asker;
  }
  for (std::string at = start; at.size() > 1;) {
    at.resize(at.rfind('/'));
    if (::lstat(at.empty() ? "/" : at.c_str(), &info) != 0) return sys_error(at, errno);
    if (info.st_uid == 0 && S_ISDIR(info.st_mode)) continue;
    return make_error(Code::denied,
                      fmt::format("{} is root's, and lies in a folder of another user's: {}", start, at),
                      "give it to that user (chown -R), or move it to a folder of root's");
  }
  return asker;
}

// Root acts for the owner of what was named. A `.git` that leads from one user's folder to another user's
// repository would borrow root's word for it.
Status check_owners(const std::string& start, const std::optional<UserIds>& asker, const Source& source) {
  TRY(const auto git_owner, git::run_as_owner(source.git_dir));
  TRY(const auto head_owner, git::run_as_owner(source.head_dir));
  const auto uid = [](const std::optional<UserIds>& ids) { return ids.has_value() ? ids->uid : 0; };
  const uid_t owner = uid(git_owner);
  if ((uid(asker) == 0 || uid(asker) == owner) && (uid(head_owner) == 0 || uid(head_owner) == owner))
    return {};
  return make_error(Code::denied,
                    fmt::format("{} and its repository {} belong to different users", start, source.git_dir),
                    "run cofferdam as one of them, or name the git directory itself with --repo");
}

// What the repository says about its own form. Only git reads the file.
Status read_extensions(Source* source) {
  git::GitCall call = call_on(*source, {"config", "--null", "--get-regexp",
                                        "^(extensions\\.(partialclone|refstorage)|remote\\..*\\.promisor)$"});
  TRY(const Captured answer, git::try_git(call));
  for (const std::string& entry : split(answer.out, '\0')) {
    const std::string key = entry.substr(0, entry.find('\n'));
    const std::string value = key.size() < entry.size() ? entry.substr(key.size() + 1) : "";
    if (key == "extensions.refstorage") {
      if (value != "files") return not_readable(source->git_dir, "refstorage");
    } else if (!key.empty() && value != "false") {
      source->partial = true;
    }
  }
  return {};
}

// A tree or commit id, or an error that says why there is none.
Result<std::string> parse_id(const Source& source, const std::string& expression) {
  git::GitCall call = call_on(source, {"rev-parse", "--verify", "--end-of-options", expression});
  call.git_dir = source.head_dir;
  TRY(const std::string out, git::run_git(call));
  std::string id(trim(out));
  if (!is_object_id(id)) return make_error(Code::protocol, "git rev-parse printed no object id");
  return id;
}

bool has_object(const Source& source, const std::string& id) {
  const auto answer = git::try_git(call_on(source, {"cat-file", "-e", id}));
  return answer && answer->status.success();
}

}  // namespace

git::GitCall call_on(const Source& source, std::vector<std::string> args) {
  git::GitCall call = git::call_in(source.git_dir, std::move(args), source.run_as);
  call.limits.out_bytes = kMaxAnswer;
  call.limits.stop_fd = source.stop_fd;
  return call;
}

Result<Source> open_source(const std::string& path) {
  auto start = real_path(path);
  if (!start || !is_directory(*start)) {
    return make_error(Code::usage, printable(path, 500) + " is not there, is no folder or cannot be read",
                      "name the folder of a git repository");
  }
  Source source;
  TRY(const auto asker, find_asker(*start));
  TRY_VOID(discover(*start, asker, &source));
  find_work_tree(*start, &source);
  TRY_VOID(check_owners(*start, asker, source));
  // Once somebody else has been found to ask, nothing runs as root any more, whatever a later look would say.
  source.run_as = asker;
  if (!asker.has_value()) {
    TRY(source.run_as, git::run_as_owner(source.git_dir));
  }
  TRY_VOID(read_extensions(&source));
  return source;
}

Result<std::string> resolve_commit(const Source& source, const std::string& revision) {
  auto id = parse_id(source, revision + "^{commit}");
  if (id) return id;
  // Code::timeout and the like are what they are; what git did not understand is the request's fault.
  if (id.error().code != Code::io) return id;
  if (const auto named = parse_id(source, revision); named && !has_object(source, *named)) {
    return incomplete(source, *named + " is not there or cannot be read");
  }
  if (revision == "HEAD") {
    return make_error(Code::usage, source.git_dir + ": there is no commit yet", "make one first: git commit");
  }
  return make_error(Code::usage,
                    fmt::format("{} has no commit '{}'", source.git_dir, printable(revision, 200)),
                    "name a branch, a tag or a commit id of that repository");
}

Error incomplete(const Source& source, const std::string& why) {
  const std::string where = source.work_tree.empty() ? source.git_dir : source.work_tree;
  std::string hint = "see what is missing: git -C " + where + " fsck";
  if (source.partial) {
    hint = fmt::format(
        "fetch what is missing first: git -C {} fetch --refetch --no-filter; when only the history is "
        "missing, "
        "--history none does without",
        where);
  } else if (source.shallow) {
    hint = fmt::format("fetch what is missing first: git -C {} fetch --unshallow", where);
  }
  return make_error(Code::not_found, fmt::format("objects of {} are missing: {}", source.git_dir, why), hint);
}

Result<std::vector<std::string>> shallow_boundary(const Source& source, const std::string& head) {
  std::vector<std::string> boundary;
  if (!source.shallow) return boundary;
  // To git a commit of the "shallow" file has no parents here; the object itself names them.
  git::GitCall list = call_on(source, {"rev-list", "--max-parents=0", "--end-of-options", head});
  list.limits.out_bytes = kMaxBoundary;
  TRY(const std::string roots, git::run_git(list));
  git::GitCall read = call_on(source, {"cat-file", "--batch"});
  read.limits.out_bytes = kMaxBoundary;
  read.input = roots;
  TRY(const std::string commits, git::run_git(read));
  std::size_t at = 0;
  while (at < commits.size()) {
    const std::size_t line_end = commits.find('\n', at);
    const std::vector<std::string> words = split(commits.substr(at, line_end - at), ' ');
    if (line_end == std::string::npos || words.size() != 3 || !is_object_id(words[0])) {
      return make_error(Code::protocol, "git cat-file printed no commit");
    }
    const std::size_t size = std::strtoull(words[2].c_str(), nullptr, 10);
    const std::string_view text = std::string_view(commits).substr(line_end + 1, size);
    if (text.substr(0, text.find("\n\n")).find("\nparent ") != std::string_view::npos) {
      boundary.push_back(words[0]);
    }
    at = line_end + 1 + size + 1;
  }
  return boundary;
}

}  // namespace cofferdam::clone
