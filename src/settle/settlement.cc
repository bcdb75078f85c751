#include "settle/settlement.h"

namespace cofferdam::settle {

using contract::Outcome;

namespace {
constexpr const char* kNoCause = "none";  // in a record that is not the last one
constexpr std::size_t kMaxLeft = 64;      // SettlementFacts::left
}  // namespace

bool Settlement::end(Outcome outcome, const std::string& control, const std::string& detail, Timestamp at) {
  if (first_.has_value()) return false;
  first_ = First{outcome, {control, detail, at}, false};
  return true;
}

bool Settlement::cancel(const std::string& by, const std::string& reason, Timestamp at) {
  if (!cancel_.has_value()) cancel_ = contract::CancelFacts{at, by, reason};
  return end(Outcome::cancelled, "cancel", reason.empty() ? "cancelled by " + by : reason, at);
}

void Settlement::started(Timestamp at) {
  started_at_ = at;
}

bool Settlement::answered(Timestamp at) {
  if (answered_at_.has_value()) return false;
  answered_at_ = at;
  return true;
}

void Settlement::storage_full(const std::string& control, const std::string& detail) {
  if (full_.control.empty()) full_ = {control, detail, {}};
}

void Settlement::exited(const ExitStatus& status, Timestamp at) {
  if (exit_at_.has_value()) return;
  exit_at_ = at;
  status_ = status;
  if (first_.has_value()) return;
  // Failed until the agent's own account has been heard.
  first_ = First{Outcome::failed, {"exit", status.describe(), at}, true};
}

void Settlement::box_gone(bool left_over, Timestamp at) {
  if (gone_at_.has_value()) return;
  gone_at_ = at;
  killed_ = left_over;
}

void Settlement::lost(const std::string& control, const std::string& detail, const std::string& left,
                      Timestamp at) {
  // Work that was completed is not what ended it.
  if (outcome() == Outcome::completed) first_.reset();
  end(Outcome::lost, control, detail, at);
  first_->outcome = Outcome::lost;
  first_->by_exit = false;
  if (!left.empty() && left_.size() < kMaxLeft) left_.push_back(left);
}

void Settlement::conclude(bool ok, const std::string& reason) {
  if (!first_.has_value() || !first_->by_exit) return;
  first_->outcome = ok ? Outcome::completed : Outcome::failed;
  if (!ok && !reason.empty()) first_->cause.detail = reason;
  if (ok) return;
  first_->cause.control = "agent";
  if (full_.control.empty()) return;
  first_->outcome = Outcome::limit;
  first_->cause.control = full_.control;
  first_->cause.detail = full_.detail + ": " + first_->cause.detail;
}

void Settlement::remark(const std::string& text) {
  if (text.empty() || (outcome() != Outcome::failed && outcome() != Outcome::limit)) return;
  std::string& detail = first_->cause.detail;
  detail += detail.empty() ? text : " (" + text + ")";
}

void Settlement::distrust(const std::string& control, const std::string& detail, Timestamp at) {
  if (outcome() != Outcome::completed) return;
  first_ = First{Outcome::failed, {control, detail, at}, false};
}

void Settlement::stale(const std::string& detail, Timestamp at) {
  if (outcome() != Outcome::completed) return;
  first_ = First{Outcome::refused, {"stale-context", detail, at}, false};
}

void Settlement::restore(const contract::ResultRecord& record, bool settled) {
  cancel_ = record.cancel;
  started_at_ = record.process.started_at;
  exit_at_ = record.process.ended_at;
  status_ = {record.process.exit_code, record.process.signal};
  gone_at_ = record.settlement.box_gone_at;
  killed_ = record.settlement.killed;
  left_ = record.settlement.left;
  answered_at_ = record.answered_at;
  const bool none = record.cause.control.empty() || record.cause.control == kNoCause;
  if (none || (!settled && record.cause.control == "exit")) return;
  first_ = First{record.outcome, record.cause, false};
}

Outcome Settlement::outcome() const {
  return first_.has_value() ? first_->outcome : Outcome::setup_failed;
}

std::uint64_t Settlement::took_ms() const {
  if (!gone_at_.has_value() || !first_.has_value() || gone_at_->ms <= first_->cause.at.ms) return 0;
  return static_cast<std::uint64_t>(gone_at_->ms - first_->cause.at.ms);
}

void Settlement::record(contract::ResultRecord* result) const {
  result->outcome = outcome();
  if (first_.has_value()) result->cause = first_->cause;
  result->cancel = cancel_;
  result->process.started_at = started_at_;
  result->process.ended_at = exit_at_;
  if (exit_at_.has_value()) {
    result->process.exit_code = status_.code;
    result->process.signal = status_.signal;
  }
  result->settlement.box_gone_at = gone_at_;
  result->settlement.killed = killed_;
  result->settlement.took_ms = took_ms();
  result->settlement.left = left_;
  result->answered_at = answered_at_;
}

}  // namespace cofferdam::settle
