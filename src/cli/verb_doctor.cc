// doctor: sets a box up on this host and shows what its probes prove, and what an attempt needs beside it.
#include <iterator>

#include "attempt/host_storage.h"
#include "attempt/probe_host.h"
#include "cli/doctor.h"
#include "cli/exit_code.h"
#include "cli/verbs.h"

namespace cofferdam::cli {
namespace {

Result<std::vector<contract::ControlFact>> probe(const Environment& environment,
                                                 const contract::Config& config) {
  TRY(const attempt::Host host, find_host(environment, config));
  return attempt::probe_host(host);
}

void append(std::vector<CheckRow> more, std::vector<CheckRow>* rows) {
  std::move(more.begin(), more.end(), std::back_inserter(*rows));
}

}  // namespace

Result<int> doctor_verb(const DoctorOptions& options) {
  if (options.seccomp) {
    TRY_VOID(print_out(attempt::seccomp_listing()));
    return 0;
  }
  const Environment environment = read_environment();
  const Result<contract::Config> loaded = load_config(environment, options.config);
  const contract::Config config = loaded ? *loaded : contract::Config{};
  std::vector<CheckRow> rows = {config_row(loaded, options.config)};
  append(needed_rows(config), &rows);
  append(box_rows(probe(environment, config)), &rows);
  append(attempt_rows(environment, config, attempt::look_at_storage(config)), &rows);
  TRY_VOID(print_out(options.json ? doctor_json(rows) : doctor_text(rows)));
  return is_ready(rows) ? 0 : kExitRefused;
}

}  // namespace cofferdam::cli
