// cofferdam: reads the command line and calls the verb.
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <string>
#include <variant>
#include <vector>

#include "base/io.h"
#include "cli/exit_code.h"
#include "cli/parse.h"
#include "cli/verbs.h"

namespace cofferdam::cli {
namespace {

// A standard descriptor that is closed would be the number of the next file that is opened, and what is meant
// for the user would go into it.
void fill_standard_descriptors() {
  for (int fd = 0; fd <= 2; ++fd) {
    if (::fcntl(fd, F_GETFD) == -1 && ::open("/dev/null", O_RDWR) != fd) ::_exit(kExitInternal);
  }
}

// Not the parts of an attempt that runs, nor what must work without a state folder; `recover` is the sweep.
bool is_about_state(const Command& command) {
  return !std::holds_alternative<GatewayOptions>(command) &&
         !std::holds_alternative<ResolverOptions>(command) &&
         !std::holds_alternative<BrokerOptions>(command) && !std::holds_alternative<PlaceOptions>(command) &&
         !std::holds_alternative<DoctorOptions>(command) && !std::holds_alternative<GateOptions>(command) &&
         !std::holds_alternative<HostSetupOptions>(command) &&
         !std::holds_alternative<RecoverOptions>(command) &&
         !std::holds_alternative<CancelOptions>(command) &&
         !std::holds_alternative<CheckpointOptions>(command);
}

Result<int> dispatch(const Command& command) {
  struct Visitor {
    Result<int> operator()(const RunOptions& options) const { return run_verb(options); }
    Result<int> operator()(const ExecOptions& options) const { return exec_verb(options); }
    Result<int> operator()(const ListOptions& options) const { return list_verb(options); }
    Result<int> operator()(const ShowOptions& options) const { return show_verb(options); }
    Result<int> operator()(const DiffOptions& options) const { return diff_verb(options); }
    Result<int> operator()(const ApplyOptions& options) const { return apply_verb(options); }
    Result<int> operator()(const LogOptions& options) const { return log_verb(options); }
    Result<int> operator()(const VerifyOptions& options) const { return verify_verb(options); }
    Result<int> operator()(const DiscardOptions& options) const { return discard_verb(options); }
    Result<int> operator()(const PruneOptions& options) const { return prune_verb(options); }
    Result<int> operator()(const DfOptions& options) const { return df_verb(options); }
    Result<int> operator()(const CancelOptions& options) const { return cancel_verb(options); }
    Result<int> operator()(const CheckpointOptions& options) const { return checkpoint_verb(options); }
    Result<int> operator()(const RecoverOptions& options) const { return recover_verb(options); }
    Result<int> operator()(const DoctorOptions& options) const { return doctor_verb(options); }
    Result<int> operator()(const GateOptions& options) const { return gate_verb(options); }
    Result<int> operator()(const ContextOptions& options) const { return context_verb(options); }
    Result<int> operator()(const HostSetupOptions& options) const { return host_setup_verb(options); }
    Result<int> operator()(const ImageOptions& options) const { return image_verb(options); }
    Result<int> operator()(const GatewayOptions& options) const { return gateway_verb(options); }
    Result<int> operator()(const ResolverOptions& options) const { return resolver_verb(options); }
    Result<int> operator()(const BrokerOptions& options) const { return broker_verb(options); }
    Result<int> operator()(const PlaceOptions& options) const { return place_verb(options); }
  };
  if (is_about_state(command)) sweep_orphans();
  return std::visit(Visitor{}, command);
}

int run_main(const std::vector<std::string>& arguments) {
  const Parsed parsed = parse(arguments);
  if (!parsed.command) {
    (void)write_all(STDERR_FILENO, parsed.err).has_value();
    return write_all(STDOUT_FILENO, parsed.out) ? parsed.exit_code : kExitInternal;
  }
  auto code = dispatch(*parsed.command);
  if (code) return *code;
  print_error(code.error());
  return exit_code_for(code.error().code);
}

}  // namespace
}  // namespace cofferdam::cli

int main(int argc, char** argv) {
  cofferdam::cli::fill_standard_descriptors();
  ::signal(SIGPIPE, SIG_IGN);  // a reader that went away is an error of one write, not our end
  return cofferdam::cli::run_main({argv + 1, argv + argc});
}
