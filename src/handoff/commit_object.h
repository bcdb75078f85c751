// Commit objects of ours, as text, and their signatures.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/process.h"
#include "base/result.h"

namespace cofferdam::handoff {

struct CommitText {
  std::string tree;
  std::vector<std::string> parents;
  std::string name;  // author and committer
  std::string email;
  Timestamp time;  // whole seconds, UTC
  std::string message;
};

// As git writes it (gitformat: "tree", "parent", "author", "committer", an empty line, the message).
std::string commit_text(const CommitText& commit);
// With a signature by ssh-keygen(1), run as the caller: `key` is an ssh key, or a public key whose private
// half an agent at SSH_AUTH_SOCK holds. What is signed is the text alone; ssh-keygen's arguments are fixed
// but for `key`. An empty `key` gives the text as it is.
Result<std::string> signed_commit_text(const CommitText& commit, const std::string& key);
// The same for a text that has no signature yet.
Result<std::string> sign_commit_text(std::string text, const std::string& key);
bool is_signed_text(const std::string& text);
// Without its signature, and on another parent, which is its only one.
std::string reparented_text(const std::string& text, const std::string& parent);
// Whether such a key signs now: an error says why not, and what to do.
Status check_sign_key(const std::string& key);
// Writes it into a repository and gives its id. `run_as`: see git.h.
struct CommitPlace {
  std::string git_dir;
  std::optional<UserIds> run_as = {};
};
Result<std::string> write_commit(const CommitPlace& place, const std::string& text);

}  // namespace cofferdam::handoff
