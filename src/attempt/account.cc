#include "attempt/account.h"

#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"
#include "contract/result_digest.h"

namespace cofferdam::attempt {

using contract::Json;
using contract::Outcome;

Result<Account> Account::admit(const std::string& state_dir, const contract::Invocation& invocation,
                               const ledger::Capacity& capacity,
                               std::function<void(const contract::Event&)> on_event) {
  TRY(ledger::Ledger ledger, ledger::Ledger::open(ledger::ledger_path(state_dir)));
  Account account(std::move(ledger), std::move(on_event));
  contract::ResultRecord& result = account.result_;
  result.attempt_id = invocation->attempt_id;
  result.invocation_sha256 = invocation.sha256();
  result.phase = invocation->phase;
  result.backend = contract::backend_name(invocation->backend);
  result.agent = {invocation->agent.name, "", invocation->model};
  result.context = invocation->context;
  result.change.base = invocation->clone.head;
  result.publication = {"none", "the attempt did not get that far"};
  result.created_at = now();
  TRY(const ledger::Admission admission,
      account.ledger_.admit(invocation, ::getpid(), capacity, account.draft()));
  account.observe(admission.events);
  return account;
}

void Account::event(const char* type, const Json& data) {
  if (is_early(type)) {
    early_.emplace_back(type, data);
    return;
  }
  const contract::Stage next = contract::next_stage(stage_, type).value_or(stage_);
  auto event = ledger_.append(result_.attempt_id, type, contract::canonical(data), draft_for(next));
  if (!event) {
    broke(event.error());
    return;
  }
  observe({*std::move(event)});
  if (early_.empty() || is_early(early_.front().first)) return;
  for (const auto& [held_type, held_data] : std::exchange(early_, {})) {
    // Of a box that went before that word came, nothing is recorded behind `settled`.
    if (contract::next_stage(stage_, held_type).has_value()) this->event(held_type, held_data);
  }
}

void Account::broke(const Error& error) {
  if (!broken_.has_value()) broken_ = error.with("ledger");
}

// A program's first words can be read before init's word that it was started.
bool Account::is_early(std::string_view type) const {
  const bool spoken = type == contract::event_type::agent || type == contract::event_type::answered;
  return spoken && stage_ < contract::Stage::started;
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

void Account::observe(const std::vector<contract::Event>& events) {
  for (const contract::Event& event : events) {
    stage_ = contract::next_stage(stage_, event.type).value_or(stage_);
    if (on_event_) on_event_(event);
  }
}

Status Account::leave_queue(const ledger::Capacity& capacity) {
  TRY(const ledger::Admission admission, ledger_.leave_queue(result_.attempt_id, capacity, draft()));
  observe(admission.events);
  return {};
}

Result<std::string> Account::claim_publication(const std::string& ref, const std::string& commit) {
  TRY(const ledger::ClaimAnswer answer,
      ledger_.claim_publication({result_.attempt_id, result_.context, ref, commit}, draft()));
  observe(answer.events);
  return answer.reason;
}

Status Account::close_publication(bool published, const std::string& reason) {
  TRY(const std::vector<contract::Event> events,
      ledger_.close_publication(result_.attempt_id, published, reason, draft()));
  observe(events);
  return {};
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
  if (contract::next_stage(stage_, contract::event_type::settled).has_value()) {  // a step failed before that
    event(contract::event_type::settled,
          {{"outcome", contract::outcome_name(result_.outcome)}, {"gone", result_.outcome != Outcome::lost}});
  }
  event(contract::event_type::finished, {{"outcome", contract::outcome_name(result_.outcome)},
                                         {"cause", contract::json_text(result_.cause.control, 100)},
                                         {"result_sha256", contract::result_digest(result_)}});
  if (broken_.has_value()) return *broken_;
  TRY(result_.chain_head, ledger_.chain_head(result_.attempt_id));
  TRY_VOID(ledger_.finish(result_));
  return result_;
}

}  // namespace cofferdam::attempt
