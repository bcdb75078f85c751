// The verbs, one file each. They return the exit code; an Error is printed by main and has its code from
// exit_code.h.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "cli/options.h"
#include "contract/config.h"

namespace cofferdam::cli {

Result<int> run_verb(const RunOptions& options);
Result<int> exec_verb(const ExecOptions& options);
Result<int> list_verb(const ListOptions& options);
Result<int> show_verb(const ShowOptions& options);
Result<int> diff_verb(const DiffOptions& options);
Result<int> apply_verb(const ApplyOptions& options);
Result<int> log_verb(const LogOptions& options);
Result<int> verify_verb(const VerifyOptions& options);
Result<int> discard_verb(const DiscardOptions& options);
Result<int> prune_verb(const PruneOptions& options);
Result<int> df_verb(const DfOptions& options);
Result<int> cancel_verb(const CancelOptions& options);
Result<int> checkpoint_verb(const CheckpointOptions& options);
Result<int> recover_verb(const RecoverOptions& options);
// Closes what a supervisor that has gone left behind, and says so on standard error. For every verb that is
// about the state folder, before its own work; what stands in the way of a recovery does not stop the verb.
void sweep_orphans();
Result<int> context_verb(const ContextOptions& options);
Result<int> doctor_verb(const DoctorOptions& options);
Result<int> gate_verb(const GateOptions& options);
Result<int> host_setup_verb(const HostSetupOptions& options);
Result<int> image_verb(const ImageOptions& options);
Result<int> gateway_verb(const GatewayOptions& options);
Result<int> resolver_verb(const ResolverOptions& options);
Result<int> broker_verb(const BrokerOptions& options);
Result<int> place_verb(const PlaceOptions& options);

// Says on standard error where bodies are written to, when they are: nobody should find them by chance.
void warn_of_capture(const contract::Config& config, const std::string& attempt_dir);
// The product, on standard output.
Status print_out(std::string_view text);
// "cofferdam: what; hint" on standard error.
void print_error(const Error& error);

}  // namespace cofferdam::cli
