#include "handoff/publish.h"

#include <fmt/core.h>

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
                    "it is never moved; delete or rename it and publish again");
}

Error blocked(const std::string& branch, const std::string& by) {
  return make_error(
      Code::conflict,
      fmt::format("the branch {} cannot be made beside {}", printable(branch, 200), printable(by, 200)),
      "choose another branch.prefix in the configuration, or rename that branch");
}

// git keeps refs as files: "a" and "a/b" exclude each other. Told apart before anything is written.
// False when the ref is there already with this very commit: publication was broken off behind that.
Result<bool> check_free(const PublishInput& input, const std::string& ref) {
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

// The objects that the commit has beyond the base. index-pack checks every link again, now against the
// objects of the user's repository.
Status send_objects(const AttemptStore& store, const PublishInput& input) {
  git::GitCall from;
  from.git_dir = store.path();
  from.args = {"pack-objects", "--revs", "--stdout", "--delta-base-offset", "-q"};
  const std::string wanted = input.commit + "\n^" + input.base_head + "\n";
  from.input = wanted;
  git::GitCall into = call_on(input, {"index-pack", "--stdin", "--strict", "--fsck-objects"});
  auto sent = git::pipe_git(from, into);
  if (sent) return {};
  Error error = std::move(sent).error();
  error.hint = "the change stays in Cofferdam's store and can be published later";
  return error.with("cannot add objects to " + input.git_dir);
}

}  // namespace

std::string branch_ref(const std::string& prefix, const std::string& attempt_id) {
  return kHeads + prefix + "/" + attempt_id;
}

Result<std::string> publish(const AttemptStore& store, const PublishInput& input) {
  if (!is_object_id(input.commit) || !is_object_id(input.base_head)) {
    return make_error(Code::internal, "publication without full object ids");
  }
  const std::string& ref = input.ref;
  TRY(const bool free, check_free(input, ref));
  if (!free) return ref;
  TRY_VOID(send_objects(store, input));
  failpoint("objects-sent");
  // Compare-and-swap against "there is none": whoever came first keeps the name.
  const std::string none(input.commit.size(), '0');
  git::GitCall update = call_on(input, {"update-ref", "--no-deref", ref, input.commit, none});
  update.outlives_us = true;
  auto updated = git::run_git(update);
  failpoint("ref-made");
  if (updated) return ref;
  TRY(const bool still_free, check_free(input, ref));  // somebody else was first
  if (!still_free) return ref;
  Error error = std::move(updated).error();
  error.hint = "the change stays in Cofferdam's store and can be published later";
  return error.with("cannot create " + ref);
}

}  // namespace cofferdam::handoff
