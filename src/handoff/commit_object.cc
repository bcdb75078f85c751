#include "handoff/commit_object.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "base/file.h"
#include "base/text.h"
#include "git/git.h"

namespace cofferdam::handoff {
namespace {

// git drops these from names: they are what ends one.
std::string identity_part(const std::string& text) {
  std::string out;
  for (char c : text) {
    if (c != '<' && c != '>' && c != '\n' && c != '\0') out.push_back(c);
  }
  return std::string(trim(out));
}

Result<std::string> ssh_signature(const std::string& text, const std::string& key) {
  SpawnOptions options;
  options.program = "/usr/bin/ssh-keygen";
  // The namespace "git" is what git verify-commit asks for (gitformat-signature(5)).
  options.argv = {"ssh-keygen", "-Y", "sign", "-n", "git", "-f", key};
  options.env = {"PATH=/usr/bin:/bin", "LC_ALL=C", "HOME=/nonexistent", "SSH_ASKPASS_REQUIRE=never"};
  const char* agent =
      std::getenv("SSH_AUTH_SOCK");  // NOLINT(concurrency-mt-unsafe): no thread of ours sets it
  if (agent != nullptr) options.env.push_back(std::string("SSH_AUTH_SOCK=") + agent);
  if (!exists(options.program)) {
    return make_error(Code::missing_tool, "ssh-keygen is not installed", "apt install openssh-client");
  }
  auto done = run_capture(std::move(options), text, {1U << 16U, std::chrono::minutes(1)});
  if (!done) return std::move(done).error().with("cannot sign");
  if (done->status.success() && starts_with(done->out, "-----BEGIN SSH SIGNATURE-----")) {
    return std::move(done->out);
  }
  return make_error(
      Code::config, fmt::format("cannot sign with {}: {}", printable(key, 300), git::first_line(done->err)),
      "commit.sign_key must be a key without a passphrase, or the public half of one in an ssh-agent");
}

bool is_signature(const std::string& line) {
  return starts_with(line, "gpgsig");
}

}  // namespace

bool is_signed_text(const std::string& text) {
  const std::vector<std::string> lines = split(text.substr(0, text.find("\n\n")), '\n');
  return std::any_of(lines.begin(), lines.end(), is_signature);
}

// A header goes on in the lines behind it that begin with a blank (gitformat-signature(5)).
std::string reparented_text(const std::string& text, const std::string& parent) {
  const std::size_t head = text.find("\n\n");
  std::string out;
  bool dropped = false;
  for (const std::string& line : split(text.substr(0, head), '\n')) {
    dropped = is_signature(line) || (dropped && starts_with(line, " "));
    if (dropped) continue;
    if (starts_with(line, "parent ")) {
      out.append("parent ").append(parent).append("\n");
    } else {
      out.append(line).append("\n");
    }
  }
  return out + text.substr(head + 1);
}

std::string commit_text(const CommitText& commit) {
  std::string text = "tree " + commit.tree + "\n";
  for (const std::string& parent : commit.parents) text.append("parent ").append(parent).append("\n");
  const std::string who = fmt::format("{} <{}> {} +0000", identity_part(commit.name),
                                      identity_part(commit.email), commit.time.ms / 1000);
  text.append("author ").append(who).append("\ncommitter ").append(who).append("\n\n");
  return text + commit.message;
}

Result<std::string> signed_commit_text(const CommitText& commit, const std::string& key) {
  std::string text = commit_text(commit);
  if (key.empty()) return text;
  return sign_commit_text(std::move(text), key);
}

Result<std::string> sign_commit_text(std::string text, const std::string& key) {
  TRY(const std::string signature, ssh_signature(text, key));
  constexpr std::string_view kSha1Tree = "tree 0123456789012345678901234567890123456789\n";
  std::string header = text.find('\n') + 1 == kSha1Tree.size() ? "gpgsig" : "gpgsig-sha256";
  for (const std::string& line : split(trim(signature), '\n')) header.append(" ").append(line).append("\n");
  text.insert(text.find("\n\n") + 1, header);
  return text;
}

Status check_sign_key(const std::string& key) {
  TRY(const std::string signature, ssh_signature("", key));
  return {};
}

Result<std::string> write_commit(const CommitPlace& place, const std::string& text) {
  git::GitCall call;
  call.git_dir = place.git_dir;
  call.args = {"hash-object", "-w", "-t", "commit", "--stdin"};
  call.input = text;
  call.run_as = place.run_as;
  TRY(const std::string out, git::run_git(call));
  std::string id(trim(out));
  if (!is_object_id(id)) return make_error(Code::protocol, "git hash-object printed no object id");
  return id;
}

}  // namespace cofferdam::handoff
