// What the user's repository is like beside its head: uncommitted files above all. Nothing waits for the
// answer, and a large work tree takes its time, so a thread of its own asks. It shares nothing with the
// supervisor but what it was given.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <thread>

#include "attempt/account.h"
#include "base/fd.h"
#include "clone/clone.h"
#include "contract/clone.h"

namespace cofferdam::attempt {

class SourceLook {
 public:
  static Result<SourceLook> start(const clone::Source& source, const clone::Cloned& cloned);
  SourceLook(SourceLook&&) noexcept = default;
  SourceLook& operator=(SourceLook&&) = delete;
  ~SourceLook();  // breaks it off, and waits

  int fd() const { return done_.get(); }  // readable once take() will not wait
  // Waits no longer than `limit`, and then breaks the look off; nullopt: it could not be told. Once.
  std::optional<contract::SourceFacts> take(std::chrono::milliseconds limit);

 private:
  // Of the thread; ours again once it has ended.
  struct State {
    clone::Source source;
    contract::CloneIdentity identity;
    contract::BasePacks packs;
    UniqueFd stop;
    UniqueFd done;
    Result<contract::SourceFacts> facts = contract::SourceFacts{};
  };
  SourceLook() = default;

  std::unique_ptr<State> state_;
  UniqueFd stop_;
  UniqueFd done_;
  std::thread thread_;
};

// The look of one attempt, and what becomes of its answer: a part of the result, and an event.
class SourceReport {
 public:
  explicit SourceReport(Account& account) : account_(account) {}
  Status start(const clone::Source& source, const clone::Cloned& cloned);
  int fd() const { return look_.has_value() ? look_->fd() : -1; }  // to poll for
  void serve();                                                    // without waiting
  void finish();  // with a bound, before the account of the agent is closed

 private:
  void report(std::chrono::milliseconds limit);
  Account& account_;
  std::optional<SourceLook> look_;
};

}  // namespace cofferdam::attempt
