#include "handoff/send.h"

#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>
#include <vector>

#include "base/failpoint.h"
#include "base/file.h"
#include "base/text.h"
#include "git/git.h"

namespace cofferdam::handoff {
namespace {

// Who writes is the owner: a root supervisor becomes it, and nobody else may. With an owner of another name
// the repository could turn into something else, such as a link to a folder of the caller's, between our look
// and our write.
Status check_owner(const Target& to) {
  struct stat info {};
  if (::stat(to.git_dir.c_str(), &info) != 0) return sys_error(to.git_dir, errno);
  const uid_t writer = to.run_as ? to.run_as->uid : ::geteuid();
  if (info.st_uid == writer) return {};
  return make_error(Code::denied,
                    fmt::format("{} belongs to another user, and only its owner adds to it", to.git_dir),
                    "run as that user, or on a clone of your own");
}

// git-new-workdir makes links of these; what they lead to must be the same owner's.
Status must_be_folder(const std::string& path, uid_t owner) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return sys_error(path, errno);
  if (S_ISDIR(info.st_mode) && info.st_uid == owner) return {};
  return make_error(Code::denied, printable(path, 500) + " is not a folder of the repository's owner",
                    "put such a folder in its place");
}

// index-pack wants the folder to be there. Nobody else reads in it; what leaves it has git's own modes.
constexpr const char* kOpen = R"(umask 077; mkdir -- "$1" "$1"/pack)";
// Fixed text; paths are its arguments. A pack is there once its index is, so that goes last.
constexpr const char* kAdopt = R"(
from="$1"/pack to="$2"/pack
mkdir -p -- "$to"
for kind in pack idx; do
  for file in "$from"/pack-*."$kind"; do
    [ -f "$file" ] && mv -n -- "$file" "$to"/
  done
done
sync -- "$to"
rm -rf -- "$1"
)";
constexpr const char* kForget = R"(rm -rf -- "$1")";

// In the repository, so as its owner.
Status run_there(const Target& to, const char* script, const std::string& quarantine) {
  SpawnOptions options;
  options.program = "/bin/sh";
  options.argv = {"sh", "-euc", script, "sh", quarantine, to.git_dir + "/objects"};
  options.env = {"PATH=/usr/bin:/bin", "LC_ALL=C"};
  options.run_as = to.run_as;
  TRY(const Captured done, run_capture(std::move(options), "", {1U << 16U, std::chrono::minutes(10)}));
  if (done.status.success()) return {};
  return make_error(Code::io, git::first_line(done.err));
}

// Of these ids, one a line, those that are commits there.
Result<std::vector<std::string>> commits_among(const std::string& git_dir, const std::string& ids,
                                               const std::optional<UserIds>& run_as) {
  git::GitCall look =
      git::call_in(git_dir, {"cat-file", "--batch-check=%(objecttype) %(objectname)", "--buffer"}, run_as);
  look.input = ids;
  TRY(const std::string out, git::run_git(look));
  std::vector<std::string> commits;
  for (const std::string& line : split(out, '\n')) {
    if (starts_with(line, "commit ")) commits.push_back(line.substr(line.find(' ') + 1));
  }
  return commits;
}

Result<bool> has_commit(const std::string& git_dir, const std::string& id,
                        const std::optional<UserIds>& run_as) {
  TRY(const std::vector<std::string> found, commits_among(git_dir, id + "\n", run_as));
  return !found.empty();
}

// Heads of the target that `from_dir` has too: what is behind them need not be sent.
Result<std::vector<std::string>> common_commits(const std::string& from_dir, const Target& to) {
  TRY(const std::string heads,
      git::run_git(git::call_in(to.git_dir, {"for-each-ref", "--format=%(objectname)"}, to.run_as)));
  return commits_among(from_dir, heads, {});
}

}  // namespace

Status must_not_be_link(const std::string& path) {
  struct stat info {};
  if (::lstat(path.c_str(), &info) != 0) return errno == ENOENT ? Status() : sys_error(path, errno);
  if (!S_ISLNK(info.st_mode)) return {};
  return make_error(Code::denied,
                    printable(path, 500) + " is a symbolic link, through which nothing is written",
                    "put a folder in its place");
}

Status check_target(const Target& to) {
  TRY_VOID(check_owner(to));
  const uid_t owner = to.run_as ? to.run_as->uid : ::geteuid();
  for (const char* folder : {"/objects", "/refs", "/refs/heads"}) {
    TRY_VOID(must_be_folder(to.git_dir + folder, owner));
  }
  return must_not_be_link(to.git_dir + "/objects/pack");
}

Result<std::string> revisions_for(const std::string& from_dir, const std::string& commit,
                                  const std::string& base_head, const Target& to) {
  TRY(const bool there, has_commit(to.git_dir, base_head, to.run_as));
  if (there) return commit + "\n^" + base_head + "\n";
  TRY(const bool kept, has_commit(from_dir, base_head, {}));
  if (!kept || exists(from_dir + "/shallow")) {
    return make_error(
        Code::not_found,
        fmt::format("{} no longer has {}, the commit that the work began from, and the attempt {}",
                    to.git_dir, base_head,
                    kept ? "was given it without the history behind it" : "does not have it either"),
        "bring that commit back into the repository");
  }
  std::string revisions = commit + "\n";
  TRY(const std::vector<std::string> common, common_commits(from_dir, to));
  for (const std::string& id : common) revisions.append("^").append(id).append("\n");
  return revisions;
}

Status send_objects(const std::string& from_dir, const std::string& revisions, const Target& to) {
  git::GitCall from =
      git::call_in(from_dir, {"pack-objects", "--revs", "--stdout", "--delta-base-offset", "-q"});
  from.input = revisions;
  const std::string objects = to.git_dir + "/objects";
  const std::string quarantine = objects + "/tmp_objdir-cofferdam-" + random_hex(8);
  git::GitCall into =
      git::call_in(to.git_dir, {"index-pack", "--stdin", "--strict", "--fsck-objects"}, to.run_as);
  into.extra_env = {"GIT_OBJECT_DIRECTORY=" + quarantine,
                    "GIT_ALTERNATE_OBJECT_DIRECTORIES=" + git::quoted_path(objects)};
  Status added = run_there(to, kOpen, quarantine);
  if (added) {
    auto sent = git::pipe_git(from, into);
    failpoint("objects-quarantined");
    added = sent ? run_there(to, kAdopt, quarantine) : Status(std::move(sent).error());
    if (!added) (void)run_there(to, kForget, quarantine).has_value();
  }
  if (added) return {};
  return std::move(added).error().with("cannot add objects to " + to.git_dir);
}

}  // namespace cofferdam::handoff
