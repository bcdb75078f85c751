#include "agent/claude.h"
#include "agent/event_data.h"
#include "base/text.h"
#include "contract/plan_answer.h"

namespace cofferdam::agent {
namespace {

using contract::Json;

constexpr std::size_t kMaxReasonBytes = 4096;
constexpr std::size_t kMaxSummaryBytes = 4096;

// The vendor's own words for a failed result: its text, its list of errors, or at least its name.
std::string reported_reason(const Json& result) {
  std::string text = text_member(result, "result");
  if (!text.empty()) return text;
  const Json& errors = member(result, "errors");
  for (std::size_t i = 0; errors.is_array() && i < errors.size() && text.size() < kMaxReasonBytes; ++i) {
    if (!errors[i].is_string()) continue;
    if (!text.empty()) text += "; ";
    text += errors[i].get<std::string>();
  }
  const std::string subtype = text_member(result, "subtype");
  if (text.empty()) return subtype.empty() ? "a result without a reason" : subtype;
  return subtype.empty() || subtype == "success" ? text : subtype + ": " + text;
}

std::string missing_result_reason(const ClaudeAccount& account, const ExitStatus& exit) {
  std::string reason = "the agent ended without a result (" + exit.describe() + ")";
  if (!account.last_error.empty()) reason += "; its last error: " + account.last_error;
  return reason;
}

// What is wrong with what the CLI calls a result; empty when nothing is. "subtype":"success" stands on API
// failures too, and an exit code of 0 on interrupted, empty and unanswered runs: each is looked at by itself.
std::string failure(const ClaudeAccount& account, const ExitStatus& exit) {
  if (!account.result) return missing_result_reason(account, exit);
  const Json& result = *account.result;
  if (member(result, "is_error") != Json(false) || text_member(result, "subtype") != "success") {
    return reported_reason(result);
  }
  if (!exit.success()) return "the agent reported success and ended with " + exit.describe();
  // Some prompts the CLI answers by itself ("Unknown command: ..."). Without a text, what is missing says
  // more.
  const std::string text = text_member(result, "result");
  if (!account.model_spoke && !trim(text).empty()) return "the model was never asked: " + text;
  return {};
}

// The plan in the result, checked against its shape. An absent one means that the model never gave it.
void take_plan(const Json& result, Verdict* verdict) {
  const Json& output = member(result, "structured_output");
  if (output.is_null()) {
    verdict->reason = "the agent ended without a plan in the required form";
    return;
  }
  std::string plan = contract::canonical(output);
  Result<contract::PlanAnswer> decoded = contract::decode_plan_answer(plan);
  if (!decoded) {
    verdict->reason =
        printable("the plan does not have the required form: " + decoded.error().what, kMaxReasonBytes);
    return;
  }
  verdict->ok = true;
  verdict->summary = printable(decoded->summary, kMaxSummaryBytes);
  verdict->answer = std::move(plan);
}

// An empty text with exit code 0 is what a stream that broke twice leaves behind.
void take_text(const Json& result, contract::Phase phase, Verdict* verdict) {
  std::string text = text_member(result, "result");
  if (trim(text).empty()) {
    verdict->reason = "the agent ended without an answer";
    return;
  }
  verdict->ok = true;
  verdict->summary = printable(text, kMaxSummaryBytes);
  if (phase != contract::Phase::implementation) verdict->answer = std::move(text);
}

}  // namespace

Verdict claude_verdict(const ClaudeAccount& account, contract::Phase phase, const ExitStatus& exit) {
  Verdict verdict;
  verdict.version = printable(account.version, 64);
  verdict.skipped_lines = account.skipped_lines;
  if (account.result) {
    const Json& usage = member(*account.result, "usage");
    verdict.input_tokens = count_member(usage, "input_tokens");
    verdict.output_tokens = count_member(usage, "output_tokens");
    const Json& cost = member(*account.result, "total_cost_usd");
    if (cost.is_number()) verdict.cost_usd = cost.get<double>();
  }
  verdict.reason = printable(failure(account, exit), kMaxReasonBytes);
  if (!verdict.reason.empty()) return verdict;
  if (phase == contract::Phase::planning) {
    take_plan(*account.result, &verdict);
  } else {
    take_text(*account.result, phase, &verdict);
  }
  return verdict;
}

}  // namespace cofferdam::agent
