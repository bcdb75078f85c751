// run, plan, ask, review: one invocation built from flags, run to its end.
#include <unistd.h>

#include "attempt/lock.h"
#include "attempt/run.h"
#include "base/io.h"
#include "cli/host.h"
#include "cli/progress.h"
#include "cli/render.h"
#include "cli/request.h"
#include "cli/verbs.h"
#include "clone/clone.h"

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

Result<contract::Invocation> build_request(const RunOptions& options, const contract::Config& config) {
  TRY(std::string prompt, read_prompt(options));
  TRY(contract::InvocationFields fields, request_fields(options, config, std::move(prompt)));
  TRY(const clone::Source source, clone::open_source(options.repository));
  TRY(fields.clone.head, clone::resolve_commit(source, options.base));
  fields.clone.repository = source.work_tree.empty() ? source.git_dir : source.work_tree;
  TRY(fields.destinations, request_destinations(options, config, fields.clone.repository));
  return contract::build_invocation(std::move(fields));
}

}  // namespace

Result<int> run_verb(const RunOptions& options) {
  const Environment environment = read_environment();
  TRY(contract::Config config, load_config(environment, options.config));
  config.capture_bodies = config.capture_bodies || options.capture_bodies;
  TRY(const contract::Invocation invocation, build_request(options, config));
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
