#include "attempt/recover.h"

#include <fmt/core.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <optional>
#include <set>

#include "attempt/account.h"
#include "attempt/bound_cache.h"
#include "attempt/bring_home.h"
#include "attempt/lock.h"
#include "base/failpoint.h"
#include "base/file.h"
#include "base/process_id.h"
#include "base/text.h"
#include "clone/clone.h"
#include "contract/lifecycle.h"
#include "contract/rules.h"
#include "handoff/publish.h"
#include "handoff/store.h"
#include "ledger/ledger.h"
#include "workspace/storage.h"

namespace cofferdam::attempt {
namespace {

using contract::Json;
using contract::Outcome;
using contract::Stage;
using SteadyClock = std::chrono::steady_clock;

// What init and the kernel need to end a box whose supervisor has gone is a grace at most; the rest is for a
// host that is very busy.
constexpr std::chrono::seconds kOrphanBound{90};
constexpr std::chrono::seconds kBeforeKill{20};
constexpr std::size_t kKeeperLine = 256;

sandbox::BoxHost box_host(const Host& host) {
  sandbox::BoxHost boxes;
  boxes.init = host.init;
  if (::geteuid() == 0) boxes.run_as = UserIds{host.config.box_uid, host.config.box_uid};
  return boxes;
}

// What runs of an attempt beside its supervisor, and what a recovery leaves of its folder.
class Leftovers {
 public:
  explicit Leftovers(std::string folder) : folder_(std::move(folder)) {
    auto line = read_file(folder_ + "/keeper", kKeeperLine);
    if (!line) return;
    const auto keeper = process_from_line(*line);
    if (!keeper.has_value()) return;
    if (auto storage = workspace::Storage::take_over(*keeper)) storage_.emplace(*std::move(storage));
  }

  const std::optional<workspace::Storage>& storage() const { return storage_; }

  // Until no process of a box is left: they end by themselves, since their supervisor has gone, and are
  // killed when they do not. What is left of them at the bound.
  Result<std::vector<pid_t>> end_boxes() {
    if (!storage_.has_value()) return std::vector<pid_t>{};
    const auto start = SteadyClock::now();
    while (true) {
      TRY(std::vector<pid_t> left, storage_->processes());
      const auto waited = SteadyClock::now() - start;
      if (left.empty() || waited > kOrphanBound) return left;
      if (waited > kBeforeKill) {
        for (pid_t pid : left) ::kill(pid, SIGKILL);
      }
      ::poll(nullptr, 0, 20);  // between two looks at /proc
    }
  }

  Status remove() {
    if (storage_.has_value()) TRY_VOID(storage_->release());
    storage_.reset();
    for (const char* name : {"/keeper", "/control"}) ::unlink((folder_ + name).c_str());
    // A pack that was on its way from a collect box.
    auto names = list_dir(folder_ + "/store.git");
    if (!names) return {};
    for (const std::string& name : *names) {
      if (starts_with(name, "incoming-")) TRY_VOID(remove_tree(folder_ + "/store.git/" + name));
    }
    return {};
  }

 private:
  std::string folder_;
  std::optional<workspace::Storage> storage_;
};

// One attempt without a supervisor, under its lock.
class Recovery {
 public:
  Recovery(const Host& host, const std::string& folder, const contract::Invocation& invocation, Stage reached,
           Account& account)
      : host_(host),
        folder_(folder),
        invocation_(invocation),
        reached_(reached),
        account_(account),
        leftovers_(folder) {}

  Result<contract::ResultRecord> run(const std::vector<contract::Event>& events) {
    hear(events);
    if (reached_ == Stage::none) {  // the row of version 1 came before its event
      account_.event(contract::event_type::admitted, {{"invocation_sha256", invocation_.sha256()},
                                                      {"phase", contract::phase_name(invocation_->phase)}});
    }
    account_.result().recovery = contract::RecoveryFacts{now(), contract::stage_name(reached_)};
    account_.event(contract::event_type::recovered, {{"stage", contract::stage_name(reached_)}});
    // Boxes of the handoff too: two of them must not write into one storage.
    auto left = leftovers_.end_boxes();
    const bool ended = left.has_value() && left->empty();
    if (!ended) say_lost(left ? *left : std::vector<pid_t>{});
    if (reached_ < Stage::settled) settle(ended);
    if (!lost_) bring_home_step();
    failpoint("recovery-brought-home");
    if (Status removed = leftovers_.remove(); !removed) account_.fail("storage", removed.error());
    failpoint("recovery-cleaned");
    return account_.close();
  }

 private:
  // What only the events have: requests to cancel, and what went over the gateway since the last record.
  void hear(const std::vector<contract::Event>& events) {
    contract::EgressFacts egress;
    contract::Usage usage;
    for (const contract::Event& event : events) {
      auto data = contract::parse_json(event.data, kMaxData);
      if (!data || !data->is_object()) continue;
      if (event.type == contract::event_type::cancel_requested) {
        account_.settlement().cancel(data->value("by", "command"), data->value("reason", ""), event.at);
      }
      if (event.type != contract::event_type::egress) continue;
      const bool denied = data->value("denied", false);
      ++(denied ? egress.denied : egress.requests);
      usage.input_tokens += data->value("input_tokens", std::uint64_t{0});
      usage.output_tokens += data->value("output_tokens", std::uint64_t{0});
    }
    contract::ResultRecord& result = account_.result();
    result.egress.denied = std::max(result.egress.denied, egress.denied);
    result.egress.requests = std::max(result.egress.requests, egress.requests);
    result.usage.requests = std::max(result.usage.requests, egress.requests);
    result.usage.input_tokens = std::max(result.usage.input_tokens, usage.input_tokens);
    result.usage.output_tokens = std::max(result.usage.output_tokens, usage.output_tokens);
  }

  // The end of an attempt that had none.
  void settle(bool ended) {
    settle::Settlement& settlement = account_.settlement();
    settlement.end(Outcome::lost, "supervisor",
                   fmt::format("the supervisor ended before the attempt did; the last step it recorded: {}",
                               contract::stage_name(reached_)),
                   now());
    if (reached_ == Stage::queued) return;
    if (ended && reached_ >= Stage::box_ready && reached_ < Stage::box_gone) {
      settlement.box_gone(true, now());
      account_.event(contract::event_type::box_gone, {{"killed", true}});
    }
    account_.settle(ended);
  }

  void say_lost(const std::vector<pid_t>& left) {
    lost_ = true;
    const std::string detail = "processes of the attempt could not be ended within the bound";
    account_.settlement().lost("box", detail, "", now());
    for (pid_t pid : left) {
      account_.settlement().lost("box", detail, fmt::format("process {} of the box", pid), now());
    }
  }

  bool has_work() const { return reached_ >= Stage::workspace_ready && account_.result().clone.has_value(); }

  // Snapshot and tree were recorded and there was nothing to commit.
  bool nothing_to_commit() const {
    const contract::ResultRecord& result = account_.result();
    return reached_ == Stage::snapshot && result.clone.has_value() &&
           result.change.tree == result.clone->tree;
  }

  void bring_home_step() {
    if (!has_work() || reached_ >= Stage::published) return;
    contract::ResultRecord& result = account_.result();
    if (nothing_to_commit()) {
      result.publication = {"none", "nothing was changed"};
      return;
    }
    if (reached_ < Stage::committed && !leftovers_.storage().has_value()) return work_is_gone();
    if (reached_ < Stage::settled && reached_ < Stage::started) {
      result.publication = {"none", "the agent had not been started"};
      return;
    }
    Status home = go_on();
    if (home) return;
    result.publication = {"failed", printable(home.error().line(), 2000)};
    account_.settlement().distrust("handoff", result.publication.reason, now());
  }

  void work_is_gone() {
    const std::string why = "the storage is gone, and the work in it: its keeper has ended";
    account_.result().publication = {"none", why};
    account_.settlement().distrust("handoff", why, now());
    account_.settlement().remark(why);
  }

  Status go_on() {
    TRY(const clone::Cloned cloned, clone::find_clone(*account_.result().clone, host_.state_dir + "/vault"));
    auto source = clone::open_source(invocation_->clone.repository);
    const sandbox::Interrupt never;
    contract::StorageRef storage;
    if (leftovers_.storage().has_value()) storage = leftovers_.storage()->ref();
    return bring_home({account_, host_, invocation_, source ? &*source : nullptr, cloned, box_host(host_),
                       storage, folder_, never, std::max(reached_, Stage::settled)});
  }

  static constexpr std::size_t kMaxData = 8U << 20U;
  const Host& host_;
  const std::string& folder_;
  const contract::Invocation& invocation_;
  Stage reached_;
  Account& account_;
  Leftovers leftovers_;
  bool lost_ = false;
};

Result<contract::ResultRecord> close_orphan(const Host& host, const AttemptLock& lock, ledger::Ledger ledger,
                                            const ledger::AttemptRecord& record) {
  TRY(const contract::Invocation invocation, contract::decode_invocation(record.invocation));
  TRY(const std::vector<contract::Event> events, ledger.events(record.attempt.id));
  const Stage reached = record.stage;
  TRY(Account account, Account::resume(std::move(ledger), record, invocation, nullptr));
  return Recovery(host, lock.folder(), invocation, reached, account).run(events);
}

// What is in the attempts' folder and is locked by nobody, and everything without a result.
Result<std::set<std::string>> candidates(const std::string& state_dir, ledger::Ledger& ledger) {
  std::set<std::string> ids;
  TRY(const std::vector<std::string> unfinished, ledger.unfinished());
  ids.insert(unfinished.begin(), unfinished.end());
  const std::string folder = state_dir + "/attempts";
  if (!is_directory(folder)) return ids;
  TRY(const std::vector<std::string> names, list_dir(folder));
  for (const std::string& name : names) {
    if (contract::is_attempt_id(name) && exists(folder + "/" + name + "/lock")) ids.insert(name);
  }
  return ids;
}

// Nothing when somebody works on it.
Result<std::optional<contract::ResultRecord>> recover_id(const Host& host, const std::string& id) {
  using Closed = std::optional<contract::ResultRecord>;
  TRY(std::optional<AttemptLock> lock, AttemptLock::try_take(host.state_dir, id));
  if (!lock.has_value()) return Closed{};
  TRY(ledger::Ledger ledger, ledger::Ledger::open(ledger::ledger_path(host.state_dir)));
  TRY(const auto record, ledger.find(id));  // under the lock: nobody writes it any more
  if (record.has_value() && !record->result.has_value()) {
    TRY(contract::ResultRecord result, close_orphan(host, *lock, std::move(ledger), *record));
    failpoint("closed-orphan");
    return Closed(std::move(result));
  }
  // Its supervisor went away behind the result, or before the admission.
  TRY_VOID(Leftovers(lock->folder()).remove());
  if (!record.has_value()) TRY_VOID(remove_tree(lock->folder()));
  return Closed{};
}

// A change whose publication had failed, of an attempt that has its result already. That stays as it was
// written; what has become of it since is in the ledger's table of publications.
Result<std::string> publish_again(const Host& host, ledger::Ledger& ledger, const std::string& id,
                                  const contract::ResultRecord& result) {
  TRY(const std::optional<AttemptLock> lock, AttemptLock::try_take(host.state_dir, id));
  if (!lock.has_value()) return std::string();
  TRY(const clone::Source source, clone::open_source(result.clone->repository));
  TRY(const handoff::AttemptStore store, handoff::AttemptStore::open(lock->folder() + "/store.git"));
  const handoff::PublishInput wanted =
      publication_of(host, source, result.clone->head, id, *result.change.commit);
  TRY(const ledger::ClaimAnswer claim,
      ledger.claim_publication({id, result.context, handoff::branch_ref(wanted), wanted.commit}));
  if (!claim.claimed) return make_error(Code::conflict, claim.reason);
  auto ref = handoff::publish(store, wanted);
  TRY(const auto none, ledger.close_publication(id, ref.has_value(), ref ? "" : ref.error().line()));
  (void)none;
  return ref;
}

void retry_failed(const Host& host, ledger::Ledger& ledger, RecoveryReport* report) {
  auto failed = ledger.failed_publications();
  if (!failed) return report->errors.push_back(std::move(failed).error());
  for (const std::string& id : *failed) {
    auto record = ledger.find(id);
    if (!record || !record->has_value() || !(*record)->result.has_value()) continue;
    auto result = contract::decode_result(*(*record)->result);
    if (!result || !result->clone.has_value() || !result->change.commit.has_value()) continue;
    auto ref = publish_again(host, ledger, id, *result);
    if (!ref) {
      report->errors.push_back(std::move(ref).error().with("attempt " + id));
    } else if (!ref->empty()) {
      report->published.push_back(*ref);
    }
  }
}

}  // namespace

Result<bool> recover_one(const Host& host, const std::string& attempt_id) {
  TRY(const auto closed, recover_id(host, attempt_id));
  return closed.has_value();
}

Result<bool> has_orphans(const std::string& state_dir) {
  TRY(ledger::Ledger ledger, ledger::Ledger::open(ledger::ledger_path(state_dir)));
  TRY(const std::set<std::string> ids, candidates(state_dir, ledger));
  for (const std::string& id : ids) {
    TRY(const bool held, AttemptLock::is_held(state_dir, id));
    if (!held) return true;
  }
  return false;
}

Result<RecoveryReport> recover(const Host& host, bool retry_publications) {
  RecoveryReport report;
  TRY(ledger::Ledger ledger, ledger::Ledger::open(ledger::ledger_path(host.state_dir)));
  TRY(const std::set<std::string> ids, candidates(host.state_dir, ledger));
  for (const std::string& id : ids) {
    auto closed = recover_id(host, id);
    if (!closed) {
      report.errors.push_back(std::move(closed).error().with("attempt " + id));
    } else if (closed->has_value()) {
      report.closed.push_back(**std::move(closed));
    }
  }
  if (retry_publications) retry_failed(host, ledger, &report);
  // What a clone that was broken off had begun goes with it.
  if (!ids.empty()) (void)bound_cache(host.state_dir, ledger, host.config.cache_max_bytes).has_value();
  return report;
}

}  // namespace cofferdam::attempt
