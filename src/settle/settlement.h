// Settlement: which cause ended an attempt, and the facts beside it. Pure: times are given, nothing is done.
//
// The first cause wins and is never overwritten. "Cancel requested", "agent answered", "process ended" and
// "box gone" are facts of their own with times of their own; none implies another.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/process.h"
#include "contract/phase.h"
#include "contract/result.h"

namespace cofferdam::settle {

class Settlement {
 public:
  // Something other than the program's own end asks for the end. True when this is the first cause, in which
  // case the caller has to end the box.
  bool end(contract::Outcome outcome, const std::string& control, const std::string& detail, Timestamp at);
  // A request to cancel, recorded even when something else came first. As end(): true when it is the first.
  bool cancel(const std::string& by, const std::string& reason, Timestamp at);
  void started(Timestamp at);
  // The agent's final answer has been read. True the first time.
  bool answered(Timestamp at);
  // A storage was full at some moment. That ends nothing: the program saw it and may have made room. When it
  // then fails by itself, this is the reason; of several the first.
  void storage_full(const std::string& control, const std::string& detail);
  // The program's end is a cause like any other: a deadline that passes later changes nothing.
  void exited(const ExitStatus& status, Timestamp at);
  void box_gone(bool left_over, Timestamp at);
  // The end of something could not be established: the outcome is `lost`, whatever the first cause was, and
  // nothing takes that back. `left` says what is still there.
  void lost(const std::string& control, const std::string& detail, const std::string& left, Timestamp at);
  // What the agent's own account says of its work; counts only when the exit was the first cause.
  void conclude(bool ok, const std::string& reason);
  // What is known beside the cause's own words; it goes behind them when the attempt failed or met a limit.
  void remark(const std::string& text);

  // What comes after a completed run and takes the word back: the change could not be brought home, or not
  // be published, or is not what the phase allows. Anything but `completed` stays as it is.
  void distrust(const std::string& control, const std::string& detail, Timestamp at);
  // The same for a change whose context has moved on: nothing failed, but the host does not take it.
  void stale(const std::string& detail, Timestamp at);
  void publication_failed(const std::string& detail, Timestamp at) { distrust("publication", detail, at); }

  // What another process had recorded before it went away. The cause of an attempt that was not `settled`
  // counts only if it was more than the program's own end, of which nobody heard what to think.
  void restore(const contract::ResultRecord& record, bool settled);

  bool has_cause() const { return first_.has_value(); }
  bool exited() const { return exit_at_.has_value(); }
  // The program's own end is the first cause: how it ended counts.
  bool ended_by_exit() const { return first_.has_value() && first_->by_exit; }
  bool has_answered() const { return answered_at_.has_value(); }
  // From the first cause to the end of the box; 0 while either is missing.
  std::uint64_t took_ms() const;
  const contract::Cause* cause() const { return first_.has_value() ? &first_->cause : nullptr; }
  // The outcome so far; setup_failed while nothing has happened.
  contract::Outcome outcome() const;
  // process, cancel, settlement, cause and outcome of the result.
  void record(contract::ResultRecord* result) const;

 private:
  struct First {
    contract::Outcome outcome = contract::Outcome::setup_failed;
    contract::Cause cause;
    bool by_exit = false;
  };
  std::optional<First> first_;
  std::optional<contract::CancelFacts> cancel_;
  std::optional<Timestamp> started_at_;
  std::optional<Timestamp> answered_at_;
  std::optional<Timestamp> exit_at_;
  ExitStatus status_;
  std::optional<Timestamp> gone_at_;
  bool killed_ = false;
  contract::Cause full_;  // without a control: nothing was full
  std::vector<std::string> left_;
};

}  // namespace cofferdam::settle
