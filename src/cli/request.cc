#include "cli/request.h"

#include <algorithm>

#include "base/file.h"

namespace cofferdam::cli {
namespace {

// An agent has its vendor; a command is given one, or none.
contract::Vendor request_vendor(const RunOptions& options) {
  if (options.agent != "command") return contract::agent_vendor(options.agent);
  for (contract::Vendor vendor : {contract::Vendor::anthropic, contract::Vendor::openai}) {
    if (options.egress == contract::vendor_name(vendor)) return vendor;
  }
  return contract::Vendor::none;
}

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
    if (options.model && request_vendor(options) == contract::Vendor::none) {
      return make_error(Code::usage, "--model means nothing for a command without --egress VENDOR");
    }
    return {};
  }
  if (prompt.empty()) {
    return make_error(Code::usage, "a PROMPT is missing",
                      "give one in quotes, or - to read it from standard input");
  }
  if (!options.egress.empty() && options.egress != contract::vendor_name(request_vendor(options))) {
    return make_error(Code::usage,
                      "the agent \"" + options.agent + "\" cannot work with --egress " + options.egress,
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
  if (options.agent == "command") {
    // Of a program nobody knows when it should speak.
    fields.deadlines.first_output.reset();
    fields.deadlines.idle.reset();
  }
  if (options.deadline) {
    auto total = contract::parse_duration(*options.deadline);
    if (!total) return std::move(total).error().with("--deadline");
    fields.deadlines.total = *total;
  }
  fields.limits = config.limits;
  const std::string& image = options.image ? *options.image : config.box_image;
  if (image != "host") fields.image = image;
  fields.clone.history = options.history == "none" ? contract::History::none : contract::History::full;
  fields.shell = options.shell == "none" ? contract::Shell::none : contract::Shell::sandboxed;
  fields.egress = request_vendor(options);
  if (fields.egress != contract::Vendor::none) {
    const std::string& usual =
        fields.egress == contract::Vendor::openai ? config.codex_model : config.claude_model;
    fields.model = options.model ? *options.model : usual;
  }
  return fields;
}

Result<std::vector<contract::Destination>> request_destinations(const RunOptions& options,
                                                                const contract::Config& config,
                                                                const std::string& repository) {
  std::vector<contract::Destination> out;
  const auto add = [&out](const contract::Destination& one) {
    const bool known =
        std::any_of(out.begin(), out.end(), [&](const auto& other) { return other.is_at(one); });
    if (!known) out.push_back(one);
  };
  for (const auto& [path, names] : config.repositories) {
    auto canonical = real_path(path);  // of one that is not there: nobody's
    if (!canonical || *canonical != repository) continue;
    for (const contract::NamedDestination& one : config.destinations) {
      if (std::find(names.begin(), names.end(), one.name) != names.end()) add(one.destination);
    }
  }
  for (const std::string& text : options.allowed) {
    auto parsed = contract::parse_destination(text);
    if (!parsed) return std::move(parsed).error().with("--allow-host");
    for (const contract::NamedDestination& one : config.destinations) {
      if (one.destination.is_at(*parsed)) *parsed = one.destination;
    }
    add(*parsed);
  }
  return out;
}

}  // namespace cofferdam::cli
