#include "git/git.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <string>

#include "base/fd.h"
#include "base/file.h"
#include "base/io.h"
#include "base/text.h"

namespace cofferdam::git {
namespace {

using Clock = std::chrono::steady_clock;

// A repository's own configuration file is always read by git (GIT_DIR/config and what it includes), so each
// key by which it could start a program, reach a network or change what we write is answered here: the
// command line wins over every file.
constexpr std::array kOverrides = {
    // Programs: hooks (reference-transaction and post-index-change too), monitors, helpers.
    "core.hooksPath=/dev/null", "core.fsmonitor=false", "core.pager=cat", "core.editor=false",
    "core.askPass=", "core.sshCommand=false", "core.gitProxy=false",
    "core.alternateRefsCommand=", "credential.helper=", "credential.interactive=false",
    "diff.external=", "gpg.program=false", "gpg.ssh.program=false",
    // Networks and work in the background.
    "protocol.allow=never", "transfer.bundleURI=false", "gc.auto=0", "maintenance.auto=false",
    "fetch.writeCommitGraph=false", "submodule.recurse=false",
    // What would change an answer: forged caches, attribute and exclude files of the user's, signatures in
    // logs.
    "core.commitGraph=false", "core.multiPackIndex=false", "core.attributesFile=/dev/null",
    "core.excludesFile=/dev/null", "core.safecrlf=false", "core.protectHFS=true", "core.protectNTFS=true",
    "log.showSignature=false",
    // What would change what is written: no reflog for the one ref; packs hold exactly what was counted, in
    // exactly two files.
    "core.logAllRefUpdates=false", "pack.useBitmaps=false", "pack.writeReverseIndex=false",
    // Another git (the user's own, or ours whose supervisor was killed) holds its locks only for a moment.
    "core.filesRefLockTimeout=10000", "core.packedRefsTimeout=10000",
    // Our repositories are bare, and always named.
    "safe.bareRepository=all"};

Result<std::string> find_git() {
  for (const char* path : {"/usr/bin/git", "/usr/local/bin/git", "/bin/git"}) {
    if (::access(path, X_OK) == 0) return std::string(path);
  }
  return make_error(Code::missing_tool, "git is not installed", "install git 2.39 or newer");
}

// git's question whether the owner of a repository is to be trusted is asked when it discovers one, and
// answered here alone: in a file of ours in the place of the user's (safe.directory in git-config(1)).
constexpr std::string_view kOwnConfig = "[safe]\n\tdirectory = *\n";
constexpr int kOwnConfigFd = 3;

struct Prepared {
  SpawnOptions options;
  UniqueFd config;  // borrowed by the options until the process is started
};

// What says which repository, and which configuration stands in the place of the user's.
Status name_repository(const GitCall& call, Prepared* prepared) {
  std::vector<std::string>& env = prepared->options.env;
  if (!call.work_tree.empty()) env.push_back("GIT_WORK_TREE=" + call.work_tree);
  if (!call.git_dir.empty()) {
    env.push_back("GIT_DIR=" + call.git_dir);
    env.emplace_back("GIT_CONFIG_GLOBAL=/dev/null");
    return {};
  }
  if (call.discover_in.empty()) return make_error(Code::internal, "git without a repository");
  TRY(prepared->config, make_sealed_memfd("cofferdam-gitconfig", kOwnConfig));
  prepared->options.fds.push_back({prepared->config.get(), kOwnConfigFd});
  env.push_back(fmt::format("GIT_CONFIG_GLOBAL=/proc/self/fd/{}", kOwnConfigFd));
  return {};
}

Result<Prepared> prepare(const GitCall& call) {
  Prepared prepared;
  SpawnOptions& options = prepared.options;
  TRY(options.program, find_git());
  options.argv = {"git", "--no-pager", "--literal-pathspecs", "--no-replace-objects"};
  if (!call.discover_in.empty()) options.argv.insert(options.argv.end(), {"-C", call.discover_in});
  for (const char* override : kOverrides) {
    options.argv.emplace_back("-c");
    options.argv.emplace_back(override);
  }
  options.argv.insert(options.argv.end(), call.args.begin(), call.args.end());
  options.env = {
      "PATH=/usr/local/bin:/usr/bin:/bin",
      "HOME=/nonexistent",
      "LC_ALL=C",
      "GIT_CONFIG_NOSYSTEM=1",
      "GIT_ATTR_NOSYSTEM=1",
      "GIT_TERMINAL_PROMPT=0",
      "GIT_ASKPASS=",
      "GIT_NO_LAZY_FETCH=1",
      "GIT_NO_REPLACE_OBJECTS=1",
      "GIT_GRAFT_FILE=/nonexistent",  // parents are what the commits say
      "GIT_OPTIONAL_LOCKS=0",
      "GIT_ALLOW_PROTOCOL=none",  // a list of allowed names; there is no protocol "none"
      "GIT_PROTOCOL_FROM_USER=0",
      "GIT_SSH_COMMAND=false",
      "GIT_PAGER=cat",
      "GIT_EDITOR=false",
      "GIT_FLUSH=0",
  };
  TRY_VOID(name_repository(call, &prepared));
  options.env.insert(options.env.end(), call.extra_env.begin(), call.extra_env.end());
  options.run_as = call.run_as;
  options.die_with_parent = !call.outlives_us;
  return prepared;
}

// The verb stands behind settings of the call's own.
std::string verb_of(const GitCall& call) {
  std::size_t at = 0;
  while (at + 2 < call.args.size() && call.args[at] == "-c") at += 2;
  return call.args.empty() ? "?" : call.args[at];
}

Error failure(const GitCall& call, const ExitStatus& status, std::string_view standard_error) {
  std::string said = first_line(standard_error);
  if (said.empty()) said = status.describe();
  return make_error(Code::io, fmt::format("git {}: {}", verb_of(call), said));
}

// A running git whose words on standard error go to memory, so that it never blocks on them.
struct Job {
  Child child;
  UniqueFd said;
  Clock::time_point end;
};

Result<UniqueFd> make_memory_file() {
  UniqueFd fd(::memfd_create("cofferdam-git", MFD_CLOEXEC));
  if (!fd.valid()) return sys_error("memfd_create", errno);
  return fd;
}

Result<std::string> content_of(const UniqueFd& fd, std::size_t max_bytes) {
  if (::lseek(fd.get(), 0, SEEK_SET) < 0) return sys_error("lseek", errno);
  return read_to_end(fd.get(), max_bytes);
}

Result<Job> start(const GitCall& call, int in_fd, int out_fd) {
  TRY(Prepared prepared, prepare(call));
  SpawnOptions& options = prepared.options;
  Job job;
  TRY(job.said, make_memory_file());
  options.fds.push_back({job.said.get(), 2});
  if (in_fd >= 0) options.fds.push_back({in_fd, 0});
  if (out_fd >= 0) options.fds.push_back({out_fd, 1});
  TRY(job.child, spawn(options));
  job.end = Clock::now() + call.limits.time;
  return job;
}

// The child is killed by its owner, Job, when it has not ended in time or the caller breaks off.
// `*broken_pipe` says that it ended only because nobody read what it wrote.
Status finish(const GitCall& call, Job* job, bool* broken_pipe = nullptr) {
  auto left = std::chrono::duration_cast<std::chrono::milliseconds>(job->end - Clock::now());
  left = std::max(left, std::chrono::milliseconds(0));
  if (call.wait) TRY_VOID(call.wait(job->child.pidfd(), left));
  auto status = job->child.wait(left);
  if (!status) return status.error().with("git " + verb_of(call));
  if (status->success()) return {};
  if (broken_pipe != nullptr) *broken_pipe = status->signal == SIGPIPE;
  auto said = content_of(job->said, 1U << 20U);
  return failure(call, *status, said ? std::string_view(*said) : std::string_view());
}

}  // namespace

std::string first_line(std::string_view standard_error) {
  std::string_view line = trim(standard_error);
  line = line.substr(0, line.find('\n'));
  for (std::string_view prefix : {"fatal: ", "error: "}) {
    if (starts_with(line, prefix)) line.remove_prefix(prefix.size());
  }
  return printable(trim(line), 500);
}

Result<Captured> try_git(const GitCall& call) {
  TRY(Prepared prepared, prepare(call));
  auto captured = run_capture(std::move(prepared.options), call.input, call.limits);
  if (!captured) return captured.error().with("git " + verb_of(call));
  return captured;
}

Result<std::string> run_git(const GitCall& call) {
  TRY(Captured captured, try_git(call));
  if (!captured.status.success()) return failure(call, captured.status, captured.err);
  return std::move(captured.out);
}

Status stream_git(const GitCall& call, int in_fd, int out_fd) {
  TRY(Job job, start(call, in_fd, out_fd));
  return finish(call, &job);
}

Result<std::string> pipe_git(const GitCall& from, const GitCall& into) {
  TRY(Pipe pipe, make_pipe());
  TRY(UniqueFd input, make_memory_file());
  TRY_VOID(write_all(input.get(), from.input));
  if (::lseek(input.get(), 0, SEEK_SET) < 0) return sys_error("lseek", errno);
  TRY(UniqueFd printed, make_memory_file());
  TRY(Job producer, start(from, input.get(), pipe.write.get()));
  TRY(Job consumer, start(into, pipe.read.get(), printed.get()));
  // Ours are closed, so that each side sees the other's end.
  pipe.read.reset();
  pipe.write.reset();
  Status consumed = finish(into, &consumer);
  if (!consumed && consumed.error().code == Code::conflict) return std::move(consumed).error();  // broken off
  bool broken_pipe = false;
  Status produced = finish(from, &producer, &broken_pipe);
  if (!produced && !broken_pipe) return std::move(produced).error();
  if (!consumed) return std::move(consumed).error();
  if (!produced) return std::move(produced).error();
  return content_of(printed, into.limits.out_bytes);
}

GitCall call_in(std::string git_dir, std::vector<std::string> args, std::optional<UserIds> run_as) {
  GitCall call;
  call.git_dir = std::move(git_dir);
  call.args = std::move(args);
  call.run_as = run_as;
  return call;
}

std::string quoted_path(const std::string& path) {
  std::string out = "\"";
  for (const char c : path) {
    if (c == '"' || c == '\\') out.push_back('\\');
    if (c == '\n') {
      out.append("\\n");
    } else {
      out.push_back(c);
    }
  }
  return out.append("\"");
}

std::vector<std::string> identity_env(const std::string& name, const std::string& email,
                                      std::int64_t seconds) {
  std::vector<std::string> env;
  for (const char* who : {"AUTHOR", "COMMITTER"}) {
    env.push_back(fmt::format("GIT_{}_NAME={}", who, name));
    env.push_back(fmt::format("GIT_{}_EMAIL={}", who, email));
    env.push_back(fmt::format("GIT_{}_DATE=@{} +0000", who, seconds));
  }
  return env;
}

Result<std::optional<UserIds>> run_as_owner(const std::string& git_dir) {
  struct stat info {};
  if (::stat(git_dir.c_str(), &info) != 0) return sys_error(git_dir, errno);
  std::optional<UserIds> owner;
  if (::geteuid() == 0 && info.st_uid != 0) owner = UserIds{info.st_uid, info.st_gid};
  return owner;
}

Status create_bare(const std::string& path, const std::string& object_format) {
  TRY_VOID(make_new_dir(path));
  for (const char* folder : {"/objects", "/objects/info", "/objects/pack", "/refs", "/refs/heads"}) {
    TRY_VOID(make_new_dir(path + folder));
  }
  const bool extended = object_format != "sha1";
  std::string config =
      fmt::format("[core]\n\trepositoryformatversion = {}\n\tbare = true\n", extended ? 1 : 0);
  if (extended) config += fmt::format("[extensions]\n\tobjectformat = {}\n", object_format);
  TRY_VOID(write_file_atomic(path + "/config", config));
  return write_file_atomic(path + "/HEAD", "ref: refs/heads/none\n");
}

}  // namespace cofferdam::git
