#include "agent/codex.h"
#include "base/text.h"
#include "contract/plan_answer.h"

namespace cofferdam::agent {
namespace {

constexpr std::size_t kMaxReasonBytes = 4096;
constexpr std::size_t kMaxSummaryBytes = 4096;

// What is wrong with the run; empty when nothing is. The exit code is 0 for a run in which no tool worked,
// and for an answer that is not what was asked for.
std::string failure(const CodexAccount& account, const ExitStatus& exit) {
  if (account.failure) return account.failure->empty() ? "a failure without a reason" : *account.failure;
  if (!account.broken_tools.empty()) return account.broken_tools;
  if (!account.completed) {
    std::string reason = "the agent ended without a result (" + exit.describe() + ")";
    if (!account.last_error.empty()) reason += "; its last error: " + account.last_error;
    return reason;
  }
  if (!exit.success()) return "the agent reported success and ended with " + exit.describe();
  if (trim(account.last_message).empty()) return "the agent ended without an answer";
  return {};
}

// The CLI hands the schema to the vendor and looks at nothing that comes back.
void take_plan(const std::string& text, Verdict* verdict) {
  Result<contract::PlanAnswer> decoded = contract::decode_plan_answer(text);
  Result<contract::Json> json = contract::parse_json(text, kMaxLineBytes);
  if (!decoded || !json) {
    const Error& error = decoded ? json.error() : decoded.error();
    verdict->reason = printable("the plan does not have the required form: " + error.what, kMaxReasonBytes);
    return;
  }
  verdict->ok = true;
  verdict->summary = printable(decoded->summary, kMaxSummaryBytes);
  verdict->answer = contract::canonical(*json);
}

}  // namespace

Verdict codex_verdict(const CodexAccount& account, contract::Phase phase, const ExitStatus& exit) {
  Verdict verdict;
  verdict.skipped_lines = account.skipped_lines;
  verdict.input_tokens = account.input_tokens;
  verdict.output_tokens = account.output_tokens;
  verdict.reason = printable(failure(account, exit), kMaxReasonBytes);
  if (!verdict.reason.empty()) return verdict;
  if (phase == contract::Phase::planning) {
    take_plan(account.last_message, &verdict);
    return verdict;
  }
  verdict.ok = true;
  verdict.summary = printable(account.last_message, kMaxSummaryBytes);
  if (phase != contract::Phase::implementation) verdict.answer = account.last_message;
  return verdict;
}

}  // namespace cofferdam::agent
