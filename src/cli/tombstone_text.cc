#include "cli/tombstone_text.h"

#include <fmt/core.h>

#include "cli/table.h"
#include "contract/json.h"

namespace cofferdam::cli {

std::string tombstone_text(const ledger::Tombstone& tombstone) {
  return fmt::format(
      "pruned     {}\noutcome    {}\nfrom       {}\nto         {}\npruned at  {}\nevents     {}\n"
      "invocation {}\nchain head {}\n",
      tombstone.attempt_id, contract::outcome_name(tombstone.outcome), to_rfc3339(tombstone.created_at),
      to_rfc3339(tombstone.finished_at), to_rfc3339(tombstone.pruned_at), tombstone.events,
      one_line(tombstone.invocation_sha256, 64), one_line(tombstone.chain_head, 64));
}

std::string tombstone_json(const ledger::Tombstone& tombstone) {
  const contract::Json out = {{"schema", "cofferdam.tombstone/1"},
                              {"attempt_id", tombstone.attempt_id},
                              {"invocation_sha256", contract::json_text(tombstone.invocation_sha256, 64)},
                              {"outcome", contract::outcome_name(tombstone.outcome)},
                              {"chain_head", contract::json_text(tombstone.chain_head, 64)},
                              {"events", contract::json_count(tombstone.events)},
                              {"created_at", to_rfc3339(tombstone.created_at)},
                              {"finished_at", to_rfc3339(tombstone.finished_at)},
                              {"pruned_at", to_rfc3339(tombstone.pruned_at)}};
  return contract::canonical(out) + "\n";
}

}  // namespace cofferdam::cli
