#include "handoff/publish.h"

#include <fmt/core.h>
#include <sys/stat.h>

#include <vector>

#include "base/failpoint.h"
#include "base/text.h"
#include "git/git.h"
#include "handoff/send.h"

namespace cofferdam::handoff {
namespace {

constexpr const char* kHeads = "refs/heads/";

git::GitCall call_on(const PublishInput& input, std::vector<std::string> args) {
  return git::call_in(input.git_dir, std::move(args), input.run_as);
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

// Nothing on the way to the new ref is a link: git itself makes none there.
Status check_place(const PublishInput& input) {
  TRY_VOID(check_target({input.git_dir, input.run_as}));
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
  const Target to{input.git_dir, input.run_as};
  TRY(const std::string revisions, revisions_for(store.path(), input.commit, input.base_head, to));
  TRY_VOID(send_objects(store.path(), revisions, to));
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
