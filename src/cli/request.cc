#include "cli/request.h"

namespace cofferdam::cli {
namespace {

Status check_agent_flags(const RunOptions& options, const std::string& prompt) {
  if (options.backend != "native") {
    return make_error(Code::unsupported_host, "the backend \"docker\" is not in this version",
                      "leave --backend out, or use --backend native");
  }
  if (options.agent == "command") {
    if (options.argv.empty()) {
      return make_error(Code::usage, "--agent command needs a program",
                        "write it behind --, as in: cofferdam run --agent command -- make test");
    }
    if (options.model && options.egress != "anthropic") {
      return make_error(Code::usage, "--model means nothing for a command without --egress anthropic");
    }
    return {};
  }
  if (prompt.empty()) {
    return make_error(Code::usage, "a PROMPT is missing",
                      "give one in quotes, or - to read it from standard input");
  }
  if (options.egress == "none") {
    return make_error(Code::usage, "the agent \"" + options.agent + "\" cannot work with --egress none",
                      "leave --egress out: it reaches its vendor's API and nothing else");
  }
  return {};
}

}  // namespace

Result<contract::InvocationFields> request_fields(const RunOptions& options, const contract::Config& config,
                                                  std::string prompt) {
  TRY_VOID(check_agent_flags(options, prompt));
  contract::InvocationFields fields;
  fields.attempt_id = options.attempt_id ? *options.attempt_id : contract::new_attempt_id();
  fields.phase = options.phase;
  fields.agent = {options.agent, options.argv};
  fields.prompt = std::move(prompt);
  fields.deadlines = config.deadlines;
  if (options.deadline) {
    auto total = contract::parse_duration(*options.deadline);
    if (!total) return std::move(total).error().with("--deadline");
    fields.deadlines.total = *total;
  }
  fields.limits = config.limits;
  if (options.agent != "command" || options.egress == "anthropic") {
    fields.egress = contract::Vendor::anthropic;
    fields.model = options.model ? *options.model : config.claude_model;
  }
  return fields;
}

}  // namespace cofferdam::cli
