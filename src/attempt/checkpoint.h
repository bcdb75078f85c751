// A checkpoint: a commit of ours of what the agent has made so far, while it goes on. Snapshot and collect
// boxes take their time, in which the supervisor has to watch: one thread per checkpoint does the work, and
// shares nothing with it but what it was given.
#pragma once

#include <chrono>
#include <deque>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>

#include "attempt/account.h"
#include "attempt/take_work.h"
#include "base/fd.h"
#include "contract/result.h"

namespace cofferdam::attempt {

struct CheckpointOrder {
  std::string by;      // "command", "agent", or "time": kept for a recovery, and no part of what is published
  std::string reason;  // a line for the commit's message
  std::string parent;  // the commit before it
  std::string parent_tree;
  std::uint64_t number = 1;
};

class CheckpointWorker {
 public:
  struct Made {
    contract::ChangeCommit commit;
    std::string pack;  // its name in the attempt's store
  };
  using Outcome = Result<std::optional<Made>>;  // none: nothing is new since the last one

  static Result<CheckpointWorker> start(const WorkSource& source, CheckpointOrder order);
  CheckpointWorker(CheckpointWorker&&) noexcept = default;
  CheckpointWorker& operator=(CheckpointWorker&&) = delete;
  ~CheckpointWorker();  // stop(), and waits

  int fd() const { return done_.get(); }  // readable once take() will not wait
  const CheckpointOrder& order() const { return state_->order; }
  // Ends its boxes; take() then has an error.
  void stop();
  Outcome take();

 private:
  // Of the thread; ours again once it has ended.
  struct State {
    WorkSource source;
    CheckpointOrder order;
    UniqueFd stop;
    UniqueFd done;
    Outcome outcome = std::optional<Made>();
  };
  CheckpointWorker() = default;
  static Outcome work(const State& state);

  std::unique_ptr<State> state_;
  UniqueFd stop_;
  UniqueFd done_;
  std::thread thread_;
};

// Those of one attempt: who asks, one at a time, what becomes of them. Part of the watch, in its thread.
class Checkpoints {
 public:
  using Clock = std::chrono::steady_clock;
  // `every`: how long between those that are for a recovery only; 0: none of them.
  Checkpoints(Account& account, WorkSource source, std::chrono::milliseconds every);

  // `peer`, if valid, gets one line: {"ok":true,"commit":...,"tree":...}, null both when nothing is new, or
  // {"ok":false,"error":...}.
  void ask(const std::string& by, const std::string& reason, UniqueFd peer);
  int fd() const { return worker_.has_value() ? worker_->fd() : -1; }  // to poll for
  Clock::time_point next() const;                                      // when to serve() without it
  void started() { due_ = Clock::now() + every_; }
  void serve();
  // The agent's box is gone: what is under way is broken off, nothing is begun any more.
  void close();

 private:
  struct Asked {
    std::string by;
    std::string reason;
    UniqueFd peer;
  };
  void begin();
  void finish();
  void drop_older(const std::string& pack, bool by_time);

  Account& account_;
  WorkSource source_;
  std::chrono::milliseconds every_;
  Clock::time_point due_ = Clock::time_point::max();
  std::deque<Asked> waiting_;  // the first one is under way when there is a worker
  std::optional<CheckpointWorker> worker_;
  std::set<std::string> kept_packs_;  // of commits that are part of the change
  std::string last_by_time_;          // the pack of the newest one that is for a recovery only
  bool closed_ = false;
};

}  // namespace cofferdam::attempt
