#include "handoff/publish.h"

#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <vector>

#include "base/failpoint.h"
#include "base/text.h"
#include "git/git.h"

namespace cofferdam::handoff {
namespace {

constexpr const char* kHeads = "refs/heads/";

git::GitCall call_on(const PublishInput& input, std::vector<std::string> args) {
  git::GitCall call;
  call.git_dir = input.git_dir;
  call.args = std::move(args);
  call.run_as = input.run_as;
  return call;
}

Error taken(const std::string& ref) {
  return make_error(Code::conflict, fmt::format("the branch {} exists already", ref),
                    "it is never moved; delete or rename it");
}

Error blocked(const std::string& branch, const std::string& by) {
  return make_error(
      Code::conflict,
      fmt::format("the branch {} cannot be made beside {}", printable(branch, 200), printable(by, 200)),
      "choose another branch.prefix in the configuration, or rename that branch");
}

// git keeps refs as files: "a" and "a/b" exclude each other. Told apart before anything is written.
// False when the ref is there already with this very commit: publication was broken off behind that.
Result<bool> check_free(const PublishInput& input) {
  const std::string& ref = input.ref;
  std::vector<std::string> args = {"for-each-ref", "--format=%(objectname) %(refname)"};
  for (std::size_t at = std::string_view(kHeads).size(); at != std::string::npos;) {
    at = ref.find('/', at + 1);
    args.push_back(ref.substr(0, at));
  }
  TRY(std::string out, git::run_git(call_on(input, args)));
  for (const std::string& line : split(out, '\n')) {
    const std::string found = line.substr(line.find(' ') + 1);
    if (line == input.commit + " " + ref) return false;
    if (found == ref) return taken(ref);
    if (starts_with(ref, found + "/") || starts_with(found, ref + "/")) return blocked(ref, found);
  }
  return true;
}

// Who writes is the owner: a root supervisor becomes it, and nobody else may. With an owner of another name
// the repository could turn into something else, such as a link to a folder of the caller's, between our look
// and our write.
Status check_owner(const PublishInput& input) {
  struct stat info {};
  if (::stat(input.git_dir.c_str(), &info) != 0) return sys_error(input.git_dir, errno);
  const uid_t writer = input.run_as ? input.run_as->uid : ::geteuid();
  if (info.st_uid == writer) return {};
  return make_error(Code::denied,
                    fmt::format("{} belongs to another user, and only its owner adds to it", input.git_dir),
                    "run as that user, or on a clone of your own");
}

Status must_not_be_link(const std::string& path) {
  struct stat info {};
  if (::lstat(path.c_str(), &info) != 0) return errno == ENOENT ? Status() : sys_error(path, errno);
  if (!S_ISLNK(info.st_mode)) return {};
  return make_error(Code::denied,
                    printable(path, 500) + " is a symbolic link, through which nothing is written",
                    "put a folder in its place");
}

// git-new-workdir makes links of these; what they lead to must be the same owner's.
Status must_be_folder(const std::string& path, uid_t owner) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return sys_error(path, errno);
  if (S_ISDIR(info.st_mode) && info.st_uid == owner) return {};
  return make_error(Code::denied, printable(path, 500) + " is not a folder of the repository's owner",
                    "put such a folder in its place");
}

// Below them nothing on the way to what is added is a link: git itself makes none there.
Status check_place(const PublishInput& input) {
  TRY_VOID(check_owner(input));
  const uid_t owner = input.run_as ? input.run_as->uid : ::geteuid();
  for (const char* folder : {"/objects", "/refs", "/refs/heads"}) {
    TRY_VOID(must_be_folder(input.git_dir + folder, owner));
  }
  TRY_VOID(must_not_be_link(input.git_dir + "/objects/pack"));
  std::string at = input.git_dir;
  at.append("/").append(input.ref);
  std::size_t end = input.git_dir.size() + std::string_view(kHeads).size();
  while (end != std::string::npos) {
    end = at.find('/', end + 1);
    TRY_VOID(must_not_be_link(at.substr(0, end)));
    struct stat info {};
    if (::lstat(at.substr(0, end).c_str(), &info) != 0 || !S_ISDIR(info.st_mode))
      break;  // check_free() judges
  }
  return {};
}

// As the list of alternates in the environment takes a path with a colon: quoted as in C.
std::string quoted(const std::string& path) {
  std::string out = "\"";
  for (char c : path) {
    if (c == '"' || c == '\\') out.push_back('\\');
    if (c == '\n') {
      out += "\\n";
    } else {
      out.push_back(c);
    }
  }
  return out + "\"";
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
Status run_there(const PublishInput& input, const char* script, const std::string& quarantine) {
  SpawnOptions options;
  options.program = "/bin/sh";
  options.argv = {"sh", "-euc", script, "sh", quarantine, input.git_dir + "/objects"};
  options.env = {"PATH=/usr/bin:/bin", "LC_ALL=C"};
  options.run_as = input.run_as;
  TRY(const Captured done, run_capture(std::move(options), "", {1U << 16U, std::chrono::minutes(10)}));
  if (done.status.success()) return {};
  return make_error(Code::io, git::first_line(done.err));
}

// The objects that the commit has beyond the base, first into a folder of the name that `git prune` and
// `git gc` clear away, as git's own receive-pack does: whatever is killed, nothing stays that they do not
// know. index-pack checks every link again, now against the objects of the user's repository.
Status send_objects(const AttemptStore& store, const PublishInput& input) {
  git::GitCall from;
  from.git_dir = store.path();
  from.args = {"pack-objects", "--revs", "--stdout", "--delta-base-offset", "-q"};
  const std::string wanted = input.commit + "\n^" + input.base_head + "\n";
  from.input = wanted;
  const std::string objects = input.git_dir + "/objects";
  const std::string quarantine = objects + "/tmp_objdir-cofferdam-" + random_hex(8);
  git::GitCall into = call_on(input, {"index-pack", "--stdin", "--strict", "--fsck-objects"});
  into.extra_env = {"GIT_OBJECT_DIRECTORY=" + quarantine,
                    "GIT_ALTERNATE_OBJECT_DIRECTORIES=" + quoted(objects)};
  TRY_VOID(run_there(input, kOpen, quarantine));
  auto sent = git::pipe_git(from, into);
  failpoint("objects-quarantined");
  Status adopted = sent ? run_there(input, kAdopt, quarantine) : Status(std::move(sent).error());
  if (adopted) return {};
  (void)run_there(input, kForget, quarantine).has_value();
  return std::move(adopted).error().with("cannot add objects to " + input.git_dir);
}

// Of a failure that need not be there the next time.
Error for_later(Error error) {
  error.hint += error.hint.empty() ? "" : ". ";
  error.hint += kPublishLater;
  return error;
}

Result<std::string> publish_ref(const AttemptStore& store, const PublishInput& input) {
  TRY_VOID(check_place(input));
  TRY(const bool free, check_free(input));
  if (!free) return input.ref;
  TRY_VOID(send_objects(store, input));
  failpoint("objects-sent");
  // Compare-and-swap against "there is none": whoever came first keeps the name.
  const std::string none(input.commit.size(), '0');
  git::GitCall update = call_on(input, {"update-ref", "--no-deref", input.ref, input.commit, none});
  update.outlives_us = true;
  auto updated = git::run_git(update);
  failpoint("ref-made");
  if (updated) return input.ref;
  TRY(const bool still_free, check_free(input));  // somebody else was first
  if (!still_free) return input.ref;
  return std::move(updated).error().with("cannot create " + input.ref);
}

}  // namespace

std::string branch_ref(const std::string& prefix, const std::string& attempt_id) {
  return kHeads + prefix + "/" + attempt_id;
}

Result<std::string> publish(const AttemptStore& store, const PublishInput& input) {
  if (!is_object_id(input.commit) || !is_object_id(input.base_head)) {
    return make_error(Code::internal, "publication without full object ids");
  }
  auto ref = publish_ref(store, input);
  if (!ref) return for_later(std::move(ref).error());
  return ref;
}

}  // namespace cofferdam::handoff
