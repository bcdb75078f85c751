#include "attempt/checkpoint.h"

#include <fmt/core.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <system_error>

#include "base/io.h"
#include "base/text.h"
#include "contract/event.h"
#include "contract/json.h"
#include "handoff/message.h"

namespace cofferdam::attempt {
namespace {

// A tree that changes under the snapshot makes git stop; an agent is rarely that busy twice.
constexpr int kTries = 3;
constexpr std::size_t kMaxWaiting = 8;
// One more is made at the end.
constexpr std::size_t kMaxCheckpoints = 999;

// Who does not wait for it any more does not hear it.
void answer(const UniqueFd& peer, const contract::Json& what) {
  if (!peer.valid()) return;
  const std::string line = contract::canonical(what) + "\n";
  ssize_t ignored = ::send(peer.get(), line.data(), line.size(), MSG_NOSIGNAL);
  (void)ignored;
}

Result<handoff::Snapshot> snapshot_of_moving_tree(const WorkSource& from,
                                                  const sandbox::Interrupt& interrupt) {
  for (int tries = 1;; ++tries) {
    auto taken = take_snapshot(from, interrupt);
    const bool moving = !taken && taken.error().code == Code::internal;
    if (!moving || tries == kTries) return taken;
  }
}

}  // namespace

Result<CheckpointWorker> CheckpointWorker::start(const WorkSource& source, CheckpointOrder order) {
  CheckpointWorker worker;
  TRY(Pipe stop, make_pipe());
  TRY(Pipe done, make_pipe());
  worker.stop_ = std::move(stop.write);
  worker.done_ = std::move(done.read);
  worker.state_.reset(new State{source, std::move(order), std::move(stop.read), std::move(done.write)});
  try {
    // Signals are for the main thread, which has them blocked: a new thread inherits that.
    worker.thread_ = std::thread([state = worker.state_.get()] {
      state->outcome = work(*state);
      state->done.reset();  // the reader sees the end of the pipe
    });
  } catch (const std::system_error& problem) {
    return make_error(Code::exhausted, std::string("cannot start a thread: ") + problem.what());
  }
  return worker;
}

CheckpointWorker::~CheckpointWorker() {
  stop();
  if (thread_.joinable()) thread_.join();
}

void CheckpointWorker::stop() {
  stop_.reset();
}

CheckpointWorker::Outcome CheckpointWorker::take() {
  thread_.join();
  return std::move(state_->outcome);
}

CheckpointWorker::Outcome CheckpointWorker::work(const State& state) {
  const CheckpointOrder& order = state.order;
  const sandbox::Interrupt interrupt{
      [&](std::vector<pollfd>* entries) {
        entries->push_back({state.stop.get(), POLLIN, 0});
      },
      [](const std::vector<pollfd>& entries) { return entries.back().revents != 0; }};
  const WorkSource& source = state.source;
  TRY(const handoff::Snapshot snapshot, snapshot_of_moving_tree(source, interrupt));
  if (snapshot.tree == order.parent_tree) return std::optional<Made>();
  // A tree that is the base again has no pack to be verified; nothing of it is new.
  std::optional<handoff::AttemptStore> store;
  std::string pack;
  if (snapshot.tree == source.cloned.identity.tree) {
    TRY(handoff::AttemptStore opened, handoff::AttemptStore::open(store_path(source.attempt_dir)));
    store.emplace(std::move(opened));
  } else {
    TRY(CollectedWork work, collect_work(source, snapshot.tree, interrupt));
    // What is refused at the end must not get out in the history of what is not.
    const handoff::Verdict verdict = handoff::judge(snapshot.findings, snapshot.more_findings, work.collected,
                                                    source.host.config.findings);
    if (verdict.refused > 0 && order.by != "time") {
      return make_error(Code::denied, "no checkpoint of what would be refused: " + verdict.refusal);
    }
    store.emplace(std::move(work.store));
    pack = std::move(work.pack);
  }
  const std::string about =
      order.reason.empty() ? fmt::format("Checkpoint {}", order.number) : printable(order.reason, 1000);
  contract::ChangeCommit made;
  made.tree = snapshot.tree;
  made.at = now();
  made.by = order.by;
  TRY(made.commit, commit_work(source, *store, snapshot.tree, order.parent,
                               handoff::commit_message(about, source.invocation->attempt_id)));
  return std::optional<Made>(Made{std::move(made), std::move(pack)});
}

Checkpoints::Checkpoints(Account& account, WorkSource source, std::chrono::milliseconds every)
    : account_(account), source_(std::move(source)), every_(every) {}

void Checkpoints::ask(const std::string& by, const std::string& reason, UniqueFd peer) {
  const char* refused = nullptr;
  if (contract::is_read_only(source_.invocation->phase)) refused = "a read-only phase leaves no commits";
  if (closed_) refused = "the attempt is ending";
  if (waiting_.size() >= kMaxWaiting) refused = "too many checkpoints are waiting";
  if (account_.result().change.commits.size() >= kMaxCheckpoints)
    refused = "the attempt has too many checkpoints";
  if (refused != nullptr) return answer(peer, {{"ok", false}, {"error", refused}});
  waiting_.push_back({by, reason, std::move(peer)});
}

Checkpoints::Clock::time_point Checkpoints::next() const {
  if (worker_.has_value() || closed_) return Clock::time_point::max();
  if (!waiting_.empty()) return Clock::now();
  return every_.count() > 0 ? due_ : Clock::time_point::max();
}

void Checkpoints::serve() {
  if (worker_.has_value()) {
    pollfd entry{worker_->fd(), POLLIN, 0};
    if (::poll(&entry, 1, 0) == 0) return;
    finish();
  }
  if (closed_) return;
  if (waiting_.empty() && every_.count() > 0 && Clock::now() >= due_) ask("time", "", UniqueFd());
  if (!waiting_.empty()) begin();
}

void Checkpoints::close() {
  closed_ = true;
  if (worker_.has_value()) {
    worker_->stop();
    finish();
  }
  for (const Asked& asked : waiting_) answer(asked.peer, {{"ok", false}, {"error", "the attempt is ending"}});
  waiting_.clear();
}

void Checkpoints::begin() {
  const std::vector<contract::ChangeCommit>& commits = account_.result().change.commits;
  CheckpointOrder order;
  order.by = waiting_.front().by;
  order.reason = waiting_.front().reason;
  order.number = commits.size() + 1;
  order.parent = commits.empty() ? source_.cloned.identity.base : commits.back().commit;
  order.parent_tree = commits.empty() ? source_.cloned.identity.tree : commits.back().tree;
  auto worker = CheckpointWorker::start(source_, std::move(order));
  if (worker) {
    worker_.emplace(*std::move(worker));
    return;
  }
  answer(waiting_.front().peer, {{"ok", false}, {"error", contract::json_text(worker.error().line(), 1000)}});
  waiting_.pop_front();
}

// Every pack is whole above the base. Of those that are for a recovery only the newest is worth its place on
// the host's disk, which would fill up otherwise.
void Checkpoints::drop_older(const std::string& pack, bool by_time) {
  if (!by_time) {
    kept_packs_.insert(pack);
    return;
  }
  const bool replaced = last_by_time_ != pack && kept_packs_.count(last_by_time_) == 0;
  if (!last_by_time_.empty() && replaced) {
    if (auto store = handoff::AttemptStore::open(store_path(source_.attempt_dir)))
      store->remove_pack(last_by_time_);
  }
  last_by_time_ = pack;
}

void Checkpoints::finish() {
  CheckpointWorker::Outcome outcome = worker_->take();
  worker_.reset();
  const Asked asked = std::move(waiting_.front());
  waiting_.pop_front();
  due_ = Clock::now() + every_;
  if (!outcome) {
    return answer(asked.peer, {{"ok", false}, {"error", contract::json_text(outcome.error().line(), 1000)}});
  }
  if (!outcome->has_value())
    return answer(asked.peer, {{"ok", true}, {"commit", nullptr}, {"tree", nullptr}});
  const contract::ChangeCommit& made = (*outcome)->commit;
  if (made.by != "time") account_.result().change.commits.push_back(made);
  account_.event(
      contract::event_type::checkpointed,
      {{"commit", made.commit}, {"tree", made.tree}, {"by", made.by}, {"at", to_rfc3339(made.at)}});
  // Behind the record: a recovery goes by the last one that is recorded, and needs its pack.
  drop_older((*outcome)->pack, made.by == "time");
  answer(asked.peer, {{"ok", true}, {"commit", made.commit}, {"tree", made.tree}});
}

}  // namespace cofferdam::attempt
