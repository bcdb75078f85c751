// recover: closes what supervisors that have gone left behind. Other verbs do the same before their own work.
#include <fmt/core.h>
#include <unistd.h>

#include "attempt/recover.h"
#include "base/file.h"
#include "base/io.h"
#include "cli/host.h"
#include "cli/table.h"
#include "cli/verbs.h"
#include "contract/json.h"
#include "ledger/ledger.h"

namespace cofferdam::cli {
namespace {

std::string line_of(const contract::ResultRecord& result) {
  std::string line = fmt::format("recovered {}: {}: {}", result.attempt_id,
                                 contract::outcome_name(result.outcome), one_line(result.cause.detail, 300));
  if (result.change.ref) {
    line += fmt::format("; the change is at {}", *result.change.ref);
  } else if (result.change.commit) {
    line += fmt::format("; its work is kept: cofferdam diff {}", result.attempt_id);
  }
  return line + "\n";
}

std::string as_json(const attempt::RecoveryReport& report) {
  contract::Json closed = contract::Json::array();
  for (const contract::ResultRecord& result : report.closed) {
    closed.push_back({{"attempt_id", result.attempt_id},
                      {"outcome", contract::outcome_name(result.outcome)},
                      {"commit", result.change.commit ? contract::Json(*result.change.commit) : nullptr},
                      {"ref", result.change.ref ? contract::Json(*result.change.ref) : nullptr}});
  }
  contract::Json errors = contract::Json::array();
  for (const Error& error : report.errors) errors.push_back(contract::json_text(error.line(), 4096));
  return contract::canonical({{"closed", closed}, {"published", report.published}, {"errors", errors}}) +
         "\n";
}

std::string as_text(const attempt::RecoveryReport& report) {
  std::string text;
  for (const contract::ResultRecord& result : report.closed) text += line_of(result);
  for (const std::string& ref : report.published) text += fmt::format("published {}\n", one_line(ref, 300));
  return text.empty() ? "nothing to recover\n" : text;
}

// Nothing was ever run here: there is nothing to recover.
Result<std::optional<attempt::Host>> host_with_records(const std::optional<std::string>& config_path) {
  const Environment environment = read_environment();
  TRY(const std::optional<std::string> state_dir, existing_state_dir(environment));
  if (!state_dir || !exists(ledger::ledger_path(*state_dir))) return std::optional<attempt::Host>{};
  TRY(contract::Config config, load_config(environment, config_path));
  TRY(attempt::Host host, make_host(environment, std::move(config)));
  return std::optional<attempt::Host>(std::move(host));
}

Status sweep() {
  TRY(const std::optional<std::string> state_dir, existing_state_dir(read_environment()));
  if (!state_dir || !exists(ledger::ledger_path(*state_dir))) return {};
  auto any = attempt::has_orphans(*state_dir);
  if (!any || !*any) return {};  // a ledger that cannot be read is the verb's own error
  TRY(const std::optional<attempt::Host> host, host_with_records(std::nullopt));
  if (!host) return {};
  (void)write_all(STDERR_FILENO, "cofferdam: an attempt has lost its supervisor; recovering it first\n")
      .has_value();
  TRY(const attempt::RecoveryReport report, attempt::recover(*host, false));
  for (const contract::ResultRecord& result : report.closed) {
    (void)write_all(STDERR_FILENO, "cofferdam: " + line_of(result)).has_value();
  }
  for (const Error& error : report.errors) print_error(error);
  return {};
}

}  // namespace

void sweep_orphans() {
  if (Status swept = sweep(); !swept) print_error(swept.error().with("recovery"));
}

Result<int> recover_verb(const RecoverOptions& options) {
  attempt::RecoveryReport report;
  TRY(const std::optional<attempt::Host> host, host_with_records(options.config));
  if (host) {
    TRY(report, attempt::recover(*host, true));
  }
  TRY_VOID(print_out(options.json ? as_json(report) : as_text(report)));
  for (const Error& error : report.errors) print_error(error);
  return report.errors.empty() ? 0 : 1;
}

}  // namespace cofferdam::cli
