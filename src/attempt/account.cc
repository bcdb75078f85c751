#include "attempt/account.h"

#include <fmt/core.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/failpoint.h"
#include "base/text.h"
#include "contract/lifecycle.h"
#include "contract/result_digest.h"

namespace cofferdam::attempt {

using contract::Json;
using contract::Outcome;

contract::ResultRecord blank_result(const contract::Invocation& invocation) {
  contract::ResultRecord result;
  result.attempt_id = invocation->attempt_id;
  result.invocation_sha256 = invocation.sha256();
  result.phase = invocation->phase;
  result.backend = contract::backend_name(invocation->backend);
  result.shell = invocation->shell;
  result.agent = {invocation->agent.name, "", invocation->model};
  result.context = invocation->context;
  const contract::CloneRequest& clone = invocation->clone;
  result.change.base = clone.work_tree.has_value() ? clone.work_tree->commit : clone.head;
  result.publication = {"none", "the attempt did not get that far"};
  return result;
}

Result<Account> Account::admit(ledger::Ledger ledger, const contract::Invocation& invocation,
                               const ledger::Capacity& capacity,
                               std::function<void(const contract::Event&)> on_event) {
  Account account(std::move(ledger), std::move(on_event));
  account.result_ = blank_result(invocation);
  account.result_.created_at = now();
  failpoint("before-admitted");
  TRY(const ledger::Admission admission,
      account.ledger_.admit(invocation, ::getpid(), capacity, account.draft()));
  account.observe(admission.events);
  return account;
}

Result<Account> Account::resume(ledger::Ledger ledger, const ledger::AttemptRecord& record,
                                const contract::Invocation& invocation,
                                std::function<void(const contract::Event&)> on_event) {
  Account account(std::move(ledger), std::move(on_event));
  account.result_ = blank_result(invocation);
  account.result_.created_at = record.attempt.created_at;
  if (record.draft.has_value()) {
    TRY(account.result_, contract::decode_result(*record.draft));
  }
  account.stage_ = record.stage;
  account.settlement_.restore(account.result_, record.stage >= contract::Stage::settled);
  return account;
}

void Account::event(const char* type, const Json& data) {
  failpoint((std::string("before-") + type).c_str());
  const contract::Stage next = contract::next_stage(stage_, type).value_or(stage_);
  // Where it cannot follow, the ledger refuses it.
  auto event = ledger_.append(result_.attempt_id, type, contract::canonical(data), draft_for(next));
  if (!event) {
    broke(event.error());
    return;
  }
  observe({*std::move(event)});
}

void Account::remarks(const char* type, const std::vector<Json>& data) {
  if (data.empty()) return;
  std::vector<ledger::NewEvent> events;
  events.reserve(data.size());
  for (const Json& one : data) events.push_back({type, contract::canonical(one)});
  auto recorded = ledger_.append_all(result_.attempt_id, events);
  if (!recorded) return broke(recorded.error());
  observe(*recorded);
}

void Account::broke(const Error& error) {
  if (!broken_.has_value()) broken_ = error.with("ledger");
}

// What a recovery would start from; the last stage has the result itself.
std::optional<std::string> Account::draft_for(contract::Stage next) const {
  if (next == stage_ || next == contract::Stage::finished) return std::nullopt;
  return draft();
}

std::string Account::draft() const {
  contract::ResultRecord draft = result_;
  settlement_.record(&draft);
  if (!settlement_.has_cause()) draft.cause = {"none", "the attempt has not ended", now()};
  return contract::encode_result(draft);
}

void Account::settle(bool gone) {
  if (!contract::next_stage(stage_, contract::event_type::settled).has_value()) return;
  const contract::Cause* cause = settlement_.cause();
  event(contract::event_type::settled,
        {{"outcome", contract::outcome_name(settlement_.outcome())},
         {"cause", contract::json_text(cause == nullptr ? "" : cause->control, 100)},
         {"gone", gone}});
}

void Account::observe(const std::vector<contract::Event>& events) {
  for (const contract::Event& event : events) {
    stage_ = contract::next_stage(stage_, event.type).value_or(stage_);
    failpoint(("after-" + event.type).c_str());
    if (on_event_) on_event_(event);
  }
}

Status Account::leave_queue(const ledger::Capacity& capacity) {
  TRY(const ledger::Admission admission, ledger_.leave_queue(result_.attempt_id, capacity, draft()));
  observe(admission.events);
  return {};
}

Result<std::string> Account::claim_publication(const std::string& ref, const std::string& commit) {
  failpoint("before-publishing");
  TRY(const ledger::ClaimAnswer answer,
      ledger_.claim_publication({result_.attempt_id, result_.context, ref, commit}, draft()));
  observe(answer.events);
  return answer.reason;
}

Status Account::close_publication(bool published, const std::string& reason) {
  failpoint("before-published");
  TRY(const std::vector<contract::Event> events,
      ledger_.close_publication(result_.attempt_id, published, reason, draft()));
  observe(events);
  return {};
}

Result<std::optional<ledger::PublicationRecord>> Account::publication() {
  return ledger_.publication(result_.attempt_id);
}

void Account::fail(const char* stage, const Error& error) {
  const bool refused = error.code == Code::unsupported_host || error.code == Code::denied ||
                       error.code == Code::conflict || error.code == Code::exhausted;
  settlement_.end(refused ? Outcome::refused : Outcome::setup_failed, stage, printable(error.line(), 2000),
                  now());
}

void Account::cancel(const std::string& by, const std::string& reason) {
  settlement_.cancel(by, reason, now());
  event(contract::event_type::cancel_requested, {{"by", by}, {"reason", contract::json_text(reason, 1000)}});
}

Result<contract::ResultRecord> Account::close() {
  settlement_.record(&result_);
  if (broken_.has_value()) return *broken_;
  failpoint("before-finished");
  const Json data = {{"outcome", contract::outcome_name(result_.outcome)},
                     {"cause", contract::json_text(result_.cause.control, 100)},
                     {"result_sha256", contract::result_digest(result_)}};
  TRY(ledger::Closed closed, ledger_.close(result_, contract::canonical(data)));
  failpoint("after-finished");
  if (on_event_) on_event_(closed.event);
  return std::move(closed.result);
}

}  // namespace cofferdam::attempt
