#include "cli/log_text.h"

#include <fmt/core.h>

#include "cli/event_facts.h"
#include "cli/table.h"

namespace cofferdam::cli {
namespace {

using contract::Json;

constexpr std::size_t kMaxLine = 1200;

std::string agent_facts(const Json& event) {
  const std::string kind = text_of(member(event, "kind"));
  const Json& data = agent_data(event);
  std::string facts = kind == "tool-call" ? tool_call(data) : text_of(member(data, "text"));
  if (facts.empty()) facts = scalars(data);
  return facts.empty() ? kind : kind + ": " + facts;
}

// A request that was let through says by its status and its size what it came to.
std::string egress_facts(const Json& data) {
  const bool denied = member(data, "denied") == Json(true);
  std::string out = denied ? "denied: " : "";
  out += text_of(member(data, "method"));
  const std::string host = text_of(member(data, "host"));
  if (!host.empty()) out += fmt::format(" {}:{}", host, text_of(member(data, "port")));
  const std::string path = text_of(member(data, "path"));
  if (!path.empty() && path != host) out += " " + path;
  out += fmt::format(" ({})", text_of(member(data, "rule")));
  for (const char* key : {"status", "request_bytes", "response_bytes", "input_tokens", "output_tokens",
                          "took_ms", "failure", "retry_after"}) {
    const std::string value = text_of(member(data, key));
    if (!value.empty() && value != "0") out += fmt::format(", {} {}", key, value);
  }
  return out;
}

std::string facts_of(const contract::Event& event) {
  const Json data = event_data(event);
  if (event.type == contract::event_type::agent) return agent_facts(data);
  if (event.type == contract::event_type::egress) return egress_facts(data);
  return scalars(data);
}

}  // namespace

std::string log_line(const contract::Event& event) {
  std::string line = fmt::format("{}  {:<15}  {}", to_rfc3339(event.at), one_line(event.type, 64),
                                 one_line(facts_of(event), kMaxLine));
  line.erase(line.find_last_not_of(' ') + 1);
  return line + "\n";
}

std::string outcome_line(const ledger::Attempt& attempt) {
  if (!attempt.outcome) return "";
  return fmt::format("{}  {}\n", contract::outcome_name(*attempt.outcome), attempt.id);
}

}  // namespace cofferdam::cli
