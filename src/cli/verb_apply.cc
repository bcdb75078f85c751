// apply: the work of one attempt onto the branch that is checked out, or nothing at all.
#include <fmt/core.h>
#include <unistd.h>

#include "attempt/apply.h"
#include "attempt/lock.h"
#include "base/file.h"
#include "base/io.h"
#include "cli/apply_text.h"
#include "cli/exit_code.h"
#include "cli/host.h"
#include "cli/records.h"
#include "cli/table.h"
#include "cli/verbs.h"

namespace cofferdam::cli {
namespace {

ApplyText text_of(const ApplyOptions& options, attempt::ApplyReport report) {
  ApplyText text;
  text.attempt_id = options.id;
  text.applied = report.applied;
  text.dry_run = options.dry_run;
  text.kind = handoff::apply_kind_name(report.kind);
  text.branch = std::move(report.branch);
  text.from = std::move(report.from);
  text.to = std::move(report.to);
  text.files = std::move(report.files);
  for (handoff::Obstacle& one : report.obstacles) {
    text.stopped.push_back({std::move(one.kind), std::move(one.path), std::move(one.detail)});
  }
  text.notes = std::move(report.notes);
  return text;
}

Error discarded(const std::string& id, const contract::ChangeFacts& change) {
  return make_error(Code::not_found, fmt::format("the work of attempt \"{}\" was discarded", id),
                    change.ref
                        ? fmt::format("it was handed off as {}: use git merge", one_line(*change.ref, 200))
                        : std::string("it was never handed off: nobody has it any more"));
}

}  // namespace

Result<int> apply_verb(const ApplyOptions& options) {
  TRY(const FoundAttempt found, find_attempt(options.id));
  TRY(const contract::ResultRecord result, finished_result(found.record));
  if (!result.change.commit) {
    return make_error(Code::conflict, fmt::format("attempt \"{}\" left no change", options.id),
                      fmt::format("see `cofferdam show {}`", options.id));
  }
  if (!exists(attempt::folder_of(found.state_dir, options.id) + "/store.git")) {
    return discarded(options.id, result.change);
  }
  const Environment environment = read_environment();
  TRY(contract::Config config, load_config(environment, options.config));
  attempt::Host host;
  host.config = std::move(config);
  host.state_dir = found.state_dir;
  TRY(host.program, real_path("/proc/self/exe"));
  TRY(attempt::ApplyReport report,
      attempt::apply(host, result, {options.repository, options.accepted, options.dry_run}));
  const ApplyText text = text_of(options, std::move(report));
  TRY_VOID(print_out(options.json ? apply_json(text) : apply_text(text)));
  return text.stopped.empty() ? 0 : kExitRefused;
}

}  // namespace cofferdam::cli
