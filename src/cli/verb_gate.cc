// gate: the attacks on boxes of this host, and whether each layer stops what it claims to.
#include "base/file.h"
#include "cli/exit_code.h"
#include "cli/gate_text.h"
#include "cli/host.h"
#include "cli/verbs.h"
#include "gate/gate.h"

namespace cofferdam::cli {

Result<int> gate_verb(const GateOptions& options) {
  if (options.list) {
    TRY(const std::vector<gate::Row> rows, gate::choose_rows(options.only));
    TRY_VOID(print_out(options.json ? gate_list_json(rows) : gate_list_text(rows)));
    return 0;
  }
  const Environment environment = read_environment();
  TRY(contract::Config config, load_config(environment, options.config));
  TRY(const attempt::Host host, find_host(environment, std::move(config)));
  TRY(const std::string exe_dir, executable_dir());
  TRY(const std::string probe, find_probe(exe_dir));
  TRY(const gate::Report report, gate::run(host, probe, options.only));
  TRY_VOID(print_out(options.json ? gate_json(report) : gate_text(report)));
  return report.passed() ? 0 : kExitNotHeld;
}

}  // namespace cofferdam::cli
