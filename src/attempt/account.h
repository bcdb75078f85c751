// The account of one attempt while it runs: every event goes to the ledger first and to the observer then,
// and the result is put together on the way.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "contract/event.h"
#include "contract/invocation.h"
#include "contract/json.h"
#include "contract/lifecycle.h"
#include "contract/result.h"
#include "ledger/ledger.h"
#include "settle/settlement.h"

namespace cofferdam::attempt {

// The result of an attempt before anything has happened.
contract::ResultRecord blank_result(const contract::Invocation& invocation);

class Account {
 public:
  // Admits the invocation, or puts it into the queue: Code::conflict when the id has been used or the context
  // is not the current one, Code::exhausted when the capacity is taken and it does not want to wait.
  static Result<Account> admit(ledger::Ledger ledger, const contract::Invocation& invocation,
                               const ledger::Capacity& capacity,
                               std::function<void(const contract::Event&)> on_event);
  bool waiting() const { return stage_ == contract::Stage::queued; }
  // One look at the queue; what it records goes to the observer. waiting() says whether it is still there.
  Status leave_queue(const ledger::Capacity& capacity);

  // An attempt whose supervisor has gone, as the ledger has it. `on_event` hears of what is added only.
  static Result<Account> resume(ledger::Ledger ledger, const ledger::AttemptRecord& record,
                                const contract::Invocation& invocation,
                                std::function<void(const contract::Event&)> on_event);

  // A ledger that cannot be written is remembered (broken()) and ends the attempt: nothing runs unrecorded.
  // So is an event that cannot come at this stage (contract/lifecycle.h), which would be a mistake of ours.
  void event(const char* type, const contract::Json& data);
  // Several at once, of a type that does not change the stage: in one transaction.
  void remarks(const char* type, const std::vector<contract::Json>& data);
  void broke(const Error& error);
  // The first failed write, if any.
  const std::optional<Error>& broken() const { return broken_; }

  contract::ResultRecord& result() { return result_; }
  settle::Settlement& settlement() { return settlement_; }
  // An Error of ours as the attempt's cause: `refused` when host or policy does not allow it, otherwise
  // `setup-failed`.
  void fail(const char* stage, const Error& error);
  // The event `settled`, unless it is written already; `gone`: nothing of the boxes is left.
  void settle(bool gone);
  contract::Stage stage() const { return stage_; }
  // A request to cancel, as fact and event. What it leads to is the caller's.
  void cancel(const std::string& by, const std::string& reason);
  // Claims the context for a commit: why not, when it is stale; empty when it is claimed.
  Result<std::string> claim_publication(const std::string& ref, const std::string& commit);
  Status close_publication(bool published, const std::string& reason);
  // What the ledger knows of the attempt's publication.
  Result<std::optional<ledger::PublicationRecord>> publication();
  // Writes the result; the last call.
  Result<contract::ResultRecord> close();

 private:
  Account(ledger::Ledger ledger, std::function<void(const contract::Event&)> on_event)
      : ledger_(std::move(ledger)), on_event_(std::move(on_event)) {}
  void observe(const std::vector<contract::Event>& events);
  std::string draft() const;
  std::optional<std::string> draft_for(contract::Stage next) const;
  ledger::Ledger ledger_;
  std::function<void(const contract::Event&)> on_event_;
  contract::ResultRecord result_;
  settle::Settlement settlement_;
  contract::Stage stage_ = contract::Stage::none;
  std::optional<Error> broken_;
};

}  // namespace cofferdam::attempt
