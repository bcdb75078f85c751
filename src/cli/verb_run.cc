// run, plan, ask, review: one invocation built from flags, run to its end.
#include <unistd.h>

#include <optional>

#include "attempt/lock.h"
#include "attempt/run.h"
#include "base/clock.h"
#include "base/io.h"
#include "cli/host.h"
#include "cli/progress.h"
#include "cli/render.h"
#include "cli/request.h"
#include "cli/verbs.h"
#include "clone/clone.h"
#include "clone/work_tree.h"

namespace cofferdam::cli {
namespace {

Result<std::string> read_prompt(const RunOptions& options) {
  if (!options.prompt) return std::string();
  if (*options.prompt != "-") return *options.prompt;
  auto text = read_to_end(STDIN_FILENO, contract::kMaxPromptBytes);
  if (text) return text;
  Error error = std::move(text).error().with("the prompt on standard input");
  if (error.code == Code::exhausted) error.code = Code::usage;
  return error;
}

struct Request {
  contract::Invocation invocation;
  clone::BaseUse work_tree;  // keeps the base of uncommitted files until the attempt has taken it
};

// The uncommitted files as a commit of ours, which the invocation then names.
Result<clone::BaseUse> include_dirty(const RunOptions& options, const contract::Config& config,
                                     const std::string& state_dir, const clone::Source& source,
                                     contract::InvocationFields* fields) {
  if (options.base != "HEAD") {
    return make_error(Code::usage, "--include-dirty is for the commit that is checked out",
                      "leave --base out, or --include-dirty");
  }
  const clone::WorkTreeWish wish{fields->clone.head, fields->clone.history, options.include_untracked,
                                 config.author_name, config.author_email,   now(),
                                 fields->attempt_id};
  TRY(std::optional<clone::WorkTreeCommit> made, clone::commit_work_tree(source, wish, state_dir + "/vault"));
  if (!made.has_value()) return clone::BaseUse();
  fields->clone.work_tree = made->base;
  return std::move(made->use);
}

Result<Request> build_request(const RunOptions& options, const contract::Config& config,
                              const Environment& environment) {
  TRY(std::string prompt, read_prompt(options));
  TRY(contract::InvocationFields fields, request_fields(options, config, std::move(prompt)));
  TRY(const clone::Source source, clone::open_source(options.repository));
  TRY(fields.clone.head, clone::resolve_commit(source, options.base));
  fields.clone.repository = source.work_tree.empty() ? source.head_dir : source.work_tree;
  TRY(fields.destinations, request_destinations(options, config, fields.clone.repository));
  clone::BaseUse use;
  if (options.include_dirty) {
    TRY(const std::string state_dir, prepare_state_dir(environment));
    TRY(use, include_dirty(options, config, state_dir, source, &fields));
  }
  TRY(contract::Invocation invocation, contract::build_invocation(std::move(fields)));
  return Request{std::move(invocation), std::move(use)};
}

}  // namespace

Result<int> run_verb(const RunOptions& options) {
  const Environment environment = read_environment();
  TRY(contract::Config config, load_config(environment, options.config));
  config.capture_bodies = config.capture_bodies || options.capture_bodies;
  TRY(const Request request, build_request(options, config, environment));
  const contract::Invocation& invocation = request.invocation;
  TRY(const attempt::Host host, make_host(environment, std::move(config)));
  warn_of_capture(host.config, attempt::folder_of(host.state_dir, invocation->attempt_id));
  Progress progress(STDERR_FILENO, is_rewritable_terminal(STDERR_FILENO));
  attempt::Controls controls;
  controls.on_event = [&progress](const contract::Event& event) { progress.show(event); };
  auto result = attempt::run(host, invocation, controls);
  progress.clear();
  if (!result) return std::move(result).error();
  TRY_VOID(print_out(options.json ? contract::encode_result(*result) + "\n"
                                  : render_result(*result, {wants_color(STDOUT_FILENO)})));
  return contract::exit_code(result->outcome);
}

}  // namespace cofferdam::cli
