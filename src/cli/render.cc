#include "cli/render.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "base/text.h"
#include "cli/table.h"
#include "contract/config.h"
#include "contract/plan_answer.h"

namespace cofferdam::cli {
namespace {

using contract::ResultRecord;

constexpr std::size_t kMaxAnswerShown = 4U << 20U;
constexpr std::size_t kMaxFilesShown = 200;
constexpr std::size_t kMaxFindingsShown = 50;
constexpr std::size_t kShortId = 12;

// One labelled line; the labels make a column.
std::string labelled(const char* label, const std::string& text) {
  return fmt::format("{:<10} {}\n", label, text);
}

std::string short_id(const std::string& id) {
  return id.substr(0, kShortId);
}

std::string colored(const std::string& text, contract::Outcome outcome, const RenderStyle& style) {
  if (!style.color) return text;
  const char* code = outcome == contract::Outcome::completed ? "32" : "31";  // green, red: ECMA-48 SGR
  return fmt::format("\033[1;{}m{}\033[0m", code, text);
}

std::string headline(const ResultRecord& result, const RenderStyle& style) {
  std::string agent = result.agent.name;
  if (!result.agent.version.empty()) agent += " " + result.agent.version;
  if (!result.agent.model.empty()) agent += ", " + result.agent.model;
  return fmt::format("{}  {}  ({}, {})\n",
                     colored(contract::outcome_name(result.outcome), result.outcome, style),
                     result.attempt_id, contract::phase_name(result.phase), one_line(agent));
}

std::string cause_lines(const ResultRecord& result) {
  std::string out = labelled("cause", one_line(result.cause.control + ": " + result.cause.detail));
  if (result.process.signal) {
    out += labelled("process", fmt::format("ended by signal {}", *result.process.signal));
  } else if (result.process.exit_code.value_or(0) != 0) {
    out += labelled("process", fmt::format("exit code {}", *result.process.exit_code));
  }
  if (result.cancel) {
    const std::string reason = one_line(result.cancel->reason);
    out += labelled("cancelled", fmt::format("by {} at {}{}", one_line(result.cancel->by),
                                             to_rfc3339(result.cancel->requested_at),
                                             reason.empty() ? "" : ": " + reason));
  }
  return out;
}

std::string answer_text(const ResultRecord& result) {
  std::string text;
  if (result.answer) {
    text = result.phase == contract::Phase::planning ? render_plan(*result.answer)
                                                     : printable(*result.answer, kMaxAnswerShown);
  } else {
    text = printable(result.summary, kMaxAnswerShown);
  }
  const std::string_view body = trim(text);
  return body.empty() ? "" : fmt::format("\n{}\n\n", body);
}

std::string branch_of(const std::string& ref) {
  const std::string heads = "refs/heads/";
  return starts_with(ref, heads) ? ref.substr(heads.size()) : ref;
}

std::string file_lines(const contract::ChangeFacts& change) {
  std::string out;
  const std::size_t shown = std::min(change.files.size(), kMaxFilesShown);
  for (std::size_t index = 0; index < shown; ++index) {
    const contract::ChangedFile& file = change.files[index];
    out += fmt::format("  {:<12} {}\n", one_line(file.status, 16), one_line(file.path));
  }
  if (change.file_count > shown) out += fmt::format("  ... and {} more\n", change.file_count - shown);
  return out;
}

std::string finding_lines(const contract::ChangeFacts& change) {
  std::string out;
  const std::size_t shown = std::min(change.findings.size(), kMaxFindingsShown);
  for (std::size_t index = 0; index < shown; ++index) {
    const contract::Finding& finding = change.findings[index];
    out += labelled("finding", fmt::format("{} ({}): {}", one_line(finding.rule), one_line(finding.action),
                                           one_line(finding.path)));
  }
  if (change.findings.size() > shown) {
    out += labelled("finding", fmt::format("... and {} more", change.findings.size() - shown));
  }
  if (change.ignored_files > 0) {
    out += labelled("left out", fmt::format("{} ignored file{}", change.ignored_files,
                                            change.ignored_files == 1 ? "" : "s"));
  }
  return out;
}

std::string change_lines(const ResultRecord& result) {
  const contract::ChangeFacts& change = result.change;
  std::string out;
  if (change.ref) out += labelled("branch", one_line(branch_of(*change.ref)));
  if (change.commit) out += labelled("commit", one_line(*change.commit));
  if (!contract::is_read_only(result.phase) || change.file_count > 0) {
    out +=
        labelled("changed", fmt::format("{} file{}", change.file_count, change.file_count == 1 ? "" : "s"));
  }
  out += file_lines(change) + finding_lines(change);
  const bool kept_back = !change.ref && !result.publication.reason.empty();
  if (kept_back) out += labelled("published", "no: " + one_line(result.publication.reason));
  if (!change.commit) return out;
  if (change.ref) {
    out += labelled("look",
                    fmt::format("git diff {}..{}", short_id(change.base), one_line(branch_of(*change.ref))));
  }
  return out + labelled("look", "cofferdam diff " + result.attempt_id);
}

std::string account_lines(const ResultRecord& result) {
  std::string out;
  if (result.usage.requests > 0 || result.egress.denied > 0) {
    std::string usage =
        fmt::format("{} requests ({} denied), {} tokens in, {} out", result.usage.requests,
                    result.egress.denied, result.usage.input_tokens, result.usage.output_tokens);
    if (result.usage.cost_usd) usage += fmt::format(", ${:.4f} at list price", *result.usage.cost_usd);
    if (result.usage.agent_cost_usd)
      usage += fmt::format(", ${:.4f} by the agent's account", *result.usage.agent_cost_usd);
    out += labelled("usage", usage);
  }
  for (const contract::DestinationFacts& one : result.egress.destinations) {
    out += labelled("reached",
                    fmt::format("{}:{}: {} connections, {} bytes out, {} in, {} denied", one_line(one.host),
                                one.port, one.connections, one.sent, one.received, one.denied));
  }
  for (const contract::ControlFact& control : result.controls) {
    if (control.enforced) continue;
    out += labelled("weaker", fmt::format("{}: not enforced{}{}", one_line(control.name),
                                          control.proof.empty() ? "" : ", ", one_line(control.proof)));
  }
  const contract::Config usual;
  const bool is_usual = result.vendor_upstream == usual.anthropic.upstream ||
                        result.vendor_upstream == usual.openai.upstream ||
                        result.vendor_upstream == contract::Config::kChatGptUpstream;
  if (!result.vendor_upstream.empty() && !is_usual) {
    out += labelled("vendor", "stand-in or internal gateway: " + one_line(result.vendor_upstream));
  }
  return out;
}

std::string list_section(const char* title, const std::vector<std::string>& items) {
  if (items.empty()) return "";
  std::string out = fmt::format("\n{}\n", title);
  for (const std::string& item : items) out += fmt::format("  - {}\n", one_line(item, kMaxAnswerShown));
  return out;
}

}  // namespace

std::string render_plan(const std::string& answer) {
  auto plan = contract::decode_plan_answer(answer);
  if (!plan) return printable(answer, kMaxAnswerShown);
  std::string out = printable(plan->summary, kMaxAnswerShown) + "\n\n";
  std::size_t number = 0;
  for (const contract::PlanStep& step : plan->steps) {
    out += fmt::format("{}. {}\n", ++number, one_line(step.title, kMaxAnswerShown));
    for (const std::string& line : split(printable(step.detail, kMaxAnswerShown), '\n')) {
      if (!line.empty()) out += fmt::format("   {}\n", line);
    }
  }
  out += list_section("Files", plan->files);
  out += list_section("Risks", plan->risks);
  return out + list_section("Commands it proposes (not run, not granted)", plan->commands);
}

std::string render_result(const ResultRecord& result, const RenderStyle& style) {
  return headline(result, style) + cause_lines(result) + answer_text(result) + change_lines(result) +
         account_lines(result);
}

bool wants_color(int fd) {
  const char* no_color = std::getenv("NO_COLOR");  // NOLINT(concurrency-mt-unsafe): no thread of ours sets it
  const char* term = std::getenv("TERM");          // NOLINT(concurrency-mt-unsafe)
  const bool refused = no_color != nullptr && *no_color != '\0';  // as no-color.org defines it
  return !refused && term != nullptr && std::string_view(term) != "dumb" && ::isatty(fd) == 1;
}

}  // namespace cofferdam::cli
