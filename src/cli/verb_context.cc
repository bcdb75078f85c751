// context: which version of a captured context is the current one.
#include <fmt/core.h>

#include "cli/host.h"
#include "cli/records.h"
#include "cli/table.h"
#include "cli/verbs.h"
#include "contract/json.h"

namespace cofferdam::cli {
namespace {

using ledger::Context;

contract::Json as_json(const Context& context) {
  return {{"name", context.name},
          {"version", context.version},
          {"sha256", context.sha256.has_value() ? contract::Json(*context.sha256) : contract::Json(nullptr)},
          {"changed_at", to_rfc3339(context.changed_at)}};
}

std::string as_table(const std::vector<Context>& contexts) {
  if (contexts.empty()) return "no contexts yet\n";
  std::vector<std::vector<std::string>> rows;
  rows.reserve(contexts.size());
  for (const Context& context : contexts) {
    rows.push_back({context.name, std::to_string(context.version), to_rfc3339(context.changed_at),
                    context.sha256.value_or("any")});
  }
  return table({"NAME", "VERSION", "CHANGED", "SHA-256"}, rows);
}

Status print_one(const Context& context, bool json) {
  return print_out(json ? contract::canonical(as_json(context)) + "\n" : as_table({context}));
}

Result<int> set(const ContextOptions& options) {
  TRY(const std::string state_dir, prepare_state_dir(read_environment()));
  TRY(ledger::Ledger ledger, ledger::Ledger::open(ledger::ledger_path(state_dir)));
  TRY(const Context context, ledger.set_context(options.name, options.from, options.to, options.sha256));
  TRY_VOID(print_one(context, options.json));
  return 0;
}

Result<int> show(const ContextOptions& options) {
  std::optional<Context> context;
  TRY(std::optional<Records> records, open_records());
  if (records) {
    TRY(context, records->ledger.context(options.name));
  }
  if (!context.has_value()) {
    return make_error(Code::not_found, fmt::format("there is no context \"{}\"", one_line(options.name)),
                      "`cofferdam context list` shows the contexts");
  }
  TRY_VOID(print_one(*context, options.json));
  return 0;
}

Result<int> list(const ContextOptions& options) {
  std::vector<Context> contexts;
  TRY(std::optional<Records> records, open_records());
  if (records) {
    TRY(contexts, records->ledger.contexts());
  }
  if (!options.json) {
    TRY_VOID(print_out(as_table(contexts)));
    return 0;
  }
  contract::Json out = contract::Json::array();
  for (const Context& context : contexts) out.push_back(as_json(context));
  TRY_VOID(print_out(contract::canonical(out) + "\n"));
  return 0;
}

}  // namespace

Result<int> context_verb(const ContextOptions& options) {
  switch (options.action) {
    case ContextOptions::Action::set:
      return set(options);
    case ContextOptions::Action::show:
      return show(options);
    case ContextOptions::Action::list:
      break;
  }
  return list(options);
}

}  // namespace cofferdam::cli
