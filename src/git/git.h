// The one way in which Cofferdam runs git on the host: plumbing verbs only, on the user's repository (trusted
// content) and on stores of ours.
//
// Nothing that a repository, a user or the system configures is ever run: the environment is built from
// nothing, hooks, fsmonitor, credential helpers, protocols and lazy fetches are off, and every key through
// which the verbs used here could start a program is overridden. Verbs that consult filters, textconv or
// external diff drivers are used on stores of ours alone, whose configuration we wrote.
//
// Thread rules: free functions without state; each call may run in any thread.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/process.h"
#include "base/result.h"

namespace cofferdam::git {

// Waits until the descriptor is readable, which says that git has ended, or the time is over (Code::timeout).
// Any other error breaks the call off: git is killed.
using Waiter = std::function<Status(int pidfd, std::chrono::milliseconds limit)>;

struct GitCall {
  std::string git_dir;            // explicit, unless discover_in is given
  std::vector<std::string> args;  // the verb first, or "-c KEY=VALUE" and then the verb
  std::string_view input = {};    // borrowed until the call returns
  std::vector<std::string> extra_env = {};
  std::optional<UserIds> run_as = {};
  CaptureLimits limits = {};
  std::string work_tree = {};  // for verbs that read one: never what the repository configures
  // With an empty git_dir: git looks for a repository from this folder on, whoever owns it. What it found is
  // named explicitly from then on.
  std::string discover_in = {};
  // Not killed when we die: for what holds git's lock files only for a moment, and would leave them for ever.
  bool outlives_us = false;
  Waiter wait = {};  // of pipe_git() and stream_git(); none: nothing but the time ends them early
};

// A call on that git directory.
GitCall call_in(std::string git_dir, std::vector<std::string> args, std::optional<UserIds> run_as = {});
// As GIT_ALTERNATE_OBJECT_DIRECTORIES takes a path that may hold a colon: quoted as in C (git(1)).
std::string quoted_path(const std::string& path);
// Author and committer of a commit that git makes, in UTC.
std::vector<std::string> identity_env(const std::string& name, const std::string& email,
                                      std::int64_t seconds);

// Standard output of a git that ended with 0. Otherwise an error with the verb and git's own first line:
// Code::io, Code::timeout, Code::exhausted (more output than allowed), Code::missing_tool.
Result<std::string> run_git(const GitCall& call);
// The same without judging the exit status.
Result<Captured> try_git(const GitCall& call);
// Standard output goes to a descriptor and standard input comes from one (-1: /dev/null); call.input is not
// used. For packs, which are never held in memory.
Status stream_git(const GitCall& call, int in_fd, int out_fd);
// Standard output of `from` is standard input of `into`; the result is what `into` printed. When both fail,
// the error is that of the cause: of `from`, unless it ended only because `into` had.
Result<std::string> pipe_git(const GitCall& from, const GitCall& into);

// As whom git must run on that folder: its owner, when we are root and the owner is somebody else.
Result<std::optional<UserIds>> run_as_owner(const std::string& git_dir);
// A bare repository of ours in the new folder `path`: no template, no hooks, our configuration.
// Code::conflict when the folder exists.
Status create_bare(const std::string& path, const std::string& object_format);
// "message" of an error for people: git's first line on standard error without its "fatal: ", printable.
std::string first_line(std::string_view standard_error);

}  // namespace cofferdam::git
