#include "attempt/recover.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <optional>
#include <set>

#include "attempt/account.h"
#include "attempt/apply.h"
#include "attempt/bound_cache.h"
#include "attempt/box_host.h"
#include "attempt/bring_home.h"
#include "attempt/lock.h"
#include "attempt/take_work.h"
#include "base/failpoint.h"
#include "base/file.h"
#include "base/io.h"
#include "base/process_id.h"
#include "base/text.h"
#include "clone/clone.h"
#include "contract/lifecycle.h"
#include "contract/rules.h"
#include "egress/gateway.h"
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

// The keeper that a supervisor wrote down. Code::not_found: it wrote down none.
Result<ProcessId> read_keeper(const std::string& folder) {
  // Whatever lies there: a link is not followed, and nothing is waited for.
  TRY(const UniqueFd fd, open_file(folder + "/keeper", O_RDONLY | O_NOFOLLOW | O_NONBLOCK));
  TRY(const std::string line, read_to_end(fd.get(), kKeeperLine));
  const auto keeper = process_from_line(line);
  if (!keeper.has_value()) return make_error(Code::not_found, folder + "/keeper names no process");
  return *keeper;
}

// What runs of an attempt beside its supervisor, and what a recovery leaves of its folder.
class Leftovers {
 public:
  // An Error when it cannot be said now whether the storage is still there.
  static Result<Leftovers> find(const std::string& folder) {
    Leftovers found(folder);
    if (!exists(folder + "/keeper")) return found;
    auto keeper = read_keeper(folder);
    if (!keeper)
      return keeper.error().code == Code::not_found ? Result<Leftovers>(std::move(found))
                                                    : Result<Leftovers>(keeper.error());
    auto storage = workspace::Storage::take_over(*keeper);
    if (storage) {
      found.storage_.emplace(*std::move(storage));
    } else if (storage.error().code != Code::not_found) {
      return std::move(storage).error();
    }
    return found;
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
      if (waited > kBeforeKill) TRY_VOID(storage_->kill_processes());
      ::poll(nullptr, 0, 20);  // between two looks at /proc
    }
  }

  Status remove() {
    if (storage_.has_value()) TRY_VOID(storage_->release());
    storage_.reset();
    for (const char* name : {"/keeper", "/control"}) ::unlink((folder_ + name).c_str());
    // A pack that was on its way from a collect box.
    return handoff::remove_incoming(store_path(folder_));
  }

 private:
  explicit Leftovers(std::string folder) : folder_(std::move(folder)) {}
  std::string folder_;
  std::optional<workspace::Storage> storage_;
};

// What may be better the next time, while the keeper has the work.
bool may_pass(const Error& error) {
  return error.code == Code::io || error.code == Code::exhausted || error.code == Code::timeout ||
         error.code == Code::missing_tool;
}

// One attempt without a supervisor, under its lock.
class Recovery {
 public:
  Recovery(const Host& host, const std::string& folder, const contract::Invocation& invocation,
           const ledger::AttemptRecord& record, Account& account, Leftovers leftovers)
      : host_(host),
        folder_(folder),
        invocation_(invocation),
        reached_(record.stage),
        has_draft_(record.draft.has_value()),
        account_(account),
        leftovers_(std::move(leftovers)) {}

  // An Error leaves the attempt as it is, for the next time.
  Result<contract::ResultRecord> run(const std::vector<contract::Event>& events) {
    hear(events);
    if (reached_ == Stage::none) {  // the row of version 1 came before its event
      account_.event(contract::event_type::admitted, {{"invocation_sha256", invocation_.sha256()},
                                                      {"phase", contract::phase_name(invocation_->phase)}});
    }
    account_.result().recovery = contract::RecoveryFacts{now(), contract::stage_name(reached_)};
    if (events.empty() || events.back().type != contract::event_type::recovered) {
      account_.event(contract::event_type::recovered, {{"stage", contract::stage_name(reached_)}});
    }
    // Boxes of the handoff too: two of them must not write into one storage.
    TRY(const std::vector<pid_t> left, leftovers_.end_boxes());
    if (!left.empty()) say_lost(left);
    if (reached_ < Stage::settled) settle(left.empty());
    if (!lost_) TRY_VOID(bring_home_step());
    TRY_VOID(close_claim());
    failpoint("recovery-brought-home");
    if (Status removed = leftovers_.remove(); !removed) {
      account_.settlement().lost("storage", printable(removed.error().line(), 2000),
                                 leftovers_.storage().has_value() ? leftovers_.storage()->describe() : "",
                                 now());
    }
    failpoint("recovery-cleaned");
    return account_.close();
  }

 private:
  // What only the events have: requests to cancel, what went over the gateway since the last record, and
  // everything of an attempt of version 1, which kept no draft.
  void hear(const std::vector<contract::Event>& events) {
    contract::EgressFacts egress;
    egress.destinations = account_.result().egress.destinations;
    for (contract::DestinationFacts& one : egress.destinations) one = {one.host, one.port};
    contract::Usage usage;
    for (const contract::Event& event : events) {
      auto data = contract::parse_json(event.data, kMaxData);
      if (!data || !data->is_object()) continue;
      if (event.type == contract::event_type::cancel_requested) hear_cancel(*data, event.at);
      if (event.type == contract::event_type::egress) hear_egress(*data, &egress, &usage);
      if (event.type == contract::event_type::checkpointed) hear_checkpoint(*data);
      if (!has_draft_) hear_old(event, *data);
    }
    contract::ResultRecord& result = account_.result();
    result.egress.denied = std::max(result.egress.denied, egress.denied);
    result.egress.requests = std::max(result.egress.requests, egress.requests);
    result.egress.destinations = std::move(egress.destinations);
    result.usage.requests = std::max(result.usage.requests, egress.requests);
    result.usage.input_tokens = std::max(result.usage.input_tokens, usage.input_tokens);
    result.usage.output_tokens = std::max(result.usage.output_tokens, usage.output_tokens);
  }

  // One that came behind the program's end was not what ended it.
  void hear_cancel(const Json& data, Timestamp at) {
    const auto& ended = account_.result().process.ended_at;
    if (ended.has_value() && ended->ms <= at.ms) return;
    account_.settlement().cancel(text_of(data, "by", "command"), text_of(data, "reason", ""), at);
  }

  // Those that were asked for are the first commits of the change; the last one for a recovery is what there
  // is when the storage has gone.
  void hear_checkpoint(const Json& data) {
    contract::ChangeCommit made{
        text_of(data, "commit", ""), text_of(data, "tree", ""), {}, text_of(data, "by", "")};
    if (!from_rfc3339(text_of(data, "at", ""), &made.at)) return;
    if (!is_object_id(made.commit) || !is_object_id(made.tree)) return;
    last_checkpoint_ = made;
    std::vector<contract::ChangeCommit>& commits = account_.result().change.commits;
    const bool known = std::any_of(commits.begin(), commits.end(), [&](const contract::ChangeCommit& one) {
      return one.commit == made.commit;
    });
    if (made.by != "time" && !known) commits.push_back(std::move(made));
  }

  static void hear_egress(const Json& data, contract::EgressFacts* egress, contract::Usage* usage) {
    const bool denied = data.value("denied", false);
    if (denied) ++egress->denied;
    const std::string host = text_of(data, "host", "");
    for (contract::DestinationFacts& one : egress->destinations) {
      if (host != one.host || data.value("port", 0) != one.port) continue;
      ++(denied ? one.denied : one.connections);
      one.sent += data.value("request_bytes", std::uint64_t{0});
      one.received += data.value("response_bytes", std::uint64_t{0});
    }
    if (denied || !host.empty() || text_of(data, "rule", "") == egress::kPresenceRule) return;
    ++egress->requests;
    usage->input_tokens += data.value("input_tokens", std::uint64_t{0});
    usage->output_tokens += data.value("output_tokens", std::uint64_t{0});
  }

  void hear_old(const contract::Event& event, const Json& data) {
    contract::ResultRecord& result = account_.result();
    if (event.type == contract::event_type::settled || event.type == contract::event_type::finished) {
      const auto outcome = contract::outcome_from_name(text_of(data, "outcome", ""));
      if (outcome.has_value())
        account_.settlement().end(*outcome, text_of(data, "cause", event.type), "as its events have it",
                                  event.at);
    }
    if (event.type != contract::event_type::published) return;
    result.change.ref = text_of(data, "ref", "");
    result.change.commit = text_of(data, "commit", "");
    result.publication = {"published", ""};
  }

  static std::string text_of(const Json& data, const char* key, const std::string& otherwise) {
    const auto found = data.find(key);
    return found != data.end() && found->is_string() ? found->get<std::string>() : otherwise;
  }

  // The end of an attempt that had none.
  void settle(bool ended) {
    settle::Settlement& settlement = account_.settlement();
    settlement.end(Outcome::lost, "supervisor",
                   fmt::format("the supervisor ended before the attempt did; the last step it recorded: {}",
                               contract::stage_name(reached_)),
                   now());
    if (reached_ == Stage::queued) return;
    const bool ran = reached_ >= Stage::box_ready && reached_ < Stage::box_gone;
    // Without the storage there is nothing to look into.
    const bool proven = ended && (!ran || leftovers_.storage().has_value());
    if (ran && proven) {
      settlement.box_gone(true, now());
      account_.event(contract::event_type::box_gone, {{"killed", true}});
    }
    account_.settle(proven);
  }

  void say_lost(const std::vector<pid_t>& left) {
    lost_ = true;
    const std::string detail = "processes of the attempt could not be ended within the bound";
    for (pid_t pid : left) {
      account_.settlement().lost("box", detail, fmt::format("process {} of the box", pid), now());
    }
  }

  // Snapshot and tree were recorded and there was nothing to commit.
  bool nothing_to_commit() const {
    const contract::ResultRecord& result = account_.result();
    return reached_ == Stage::snapshot && result.clone.has_value() &&
           result.change.tree == result.clone->tree && result.change.commits.empty();
  }

  Status bring_home_step() {
    if (reached_ == Stage::not_published) return hear_refusal();
    // Whether an agent had been told to go is not known before `started`: its work, if any, is kept.
    if (reached_ < Stage::box_ready || reached_ >= Stage::published) return {};
    if (!account_.result().clone.has_value()) return {};
    contract::ResultRecord& result = account_.result();
    if (nothing_to_commit()) {
      result.publication = {"none", "nothing was changed"};
      return {};
    }
    if (reached_ < Stage::committed && !leftovers_.storage().has_value()) {
      work_is_gone();
      return {};
    }
    Status home = go_on();
    if (home) return {};
    if (leftovers_.storage().has_value() && may_pass(home.error())) return home;
    result.publication = {"failed", printable(home.error().line(), 2000)};
    account_.settlement().distrust("handoff", result.publication.reason, now());
    return {};
  }

  // The draft was stored with the refusal itself, before its supervisor drew the conclusion.
  Status hear_refusal() {
    TRY(const auto row, account_.publication());
    if (!row.has_value()) return {};
    account_.result().publication = {row->state == "stale" ? "stale" : "failed", row->reason};
    if (row->state == "stale") {
      account_.settlement().stale(row->reason, now());
    } else {
      account_.settlement().publication_failed(row->reason, now());
    }
    return {};
  }

  // A claim must not outlive the account of its attempt: what could not be published now is tried again
  // later.
  Status close_claim() {
    if (account_.stage() != Stage::publishing) return {};
    contract::ResultRecord& result = account_.result();
    if (result.publication.state != "failed") {
      result.publication = {"failed", "the publication was broken off and could not be gone on with"};
    }
    account_.settlement().publication_failed(result.publication.reason, now());
    return account_.close_publication(false, result.publication.reason);
  }

  void work_is_gone() {
    std::string why = "the storage is gone, and the work in it: its keeper has ended";
    contract::ChangeFacts& change = account_.result().change;
    if (last_checkpoint_.has_value()) {
      change.commit = last_checkpoint_->commit;
      change.tree = last_checkpoint_->tree;
      why.append("; what was there at ").append(to_rfc3339(last_checkpoint_->at)).append(" is kept");
    }
    account_.result().publication = {"none", why};
    account_.settlement().distrust("handoff", why, now());
    account_.settlement().remark(why);
  }

  Status go_on() {
    TRY(const clone::Cloned cloned, clone::find_clone(*account_.result().clone, host_.state_dir + "/vault"));
    // By its git directory, as it was cloned: a work tree may have gone, or lead elsewhere by now.
    auto source = clone::open_source(account_.result().clone->repository);
    const sandbox::Interrupt never;
    contract::StorageRef storage;
    if (leftovers_.storage().has_value()) storage = leftovers_.storage()->ref();
    TRY(const auto row, account_.publication());
    return bring_home({account_, host_, invocation_, source ? &*source : nullptr, cloned,
                       box_host(host_, invocation_->attempt_id), storage, folder_, never,
                       std::max(reached_, Stage::settled), row.has_value() ? row->ref : ""});
  }

  static constexpr std::size_t kMaxData = 8U << 20U;
  const Host& host_;
  const std::string& folder_;
  const contract::Invocation& invocation_;
  Stage reached_;
  bool has_draft_;
  Account& account_;
  Leftovers leftovers_;
  std::optional<contract::ChangeCommit> last_checkpoint_;
  bool lost_ = false;
};

// Version 1 wrote the last event and the result one after the other, and locked nothing.
Result<std::optional<contract::ResultRecord>> close_half_finished(ledger::Ledger& ledger,
                                                                  const ledger::AttemptRecord& record) {
  TRY(const std::vector<contract::Event> events, ledger.events(record.attempt.id));
  TRY(const contract::Invocation invocation, contract::decode_invocation(record.invocation));
  contract::ResultRecord result = blank_result(invocation);
  result.created_at = record.attempt.created_at;
  result.outcome = Outcome::lost;
  result.cause = {"supervisor", "the supervisor ended between the last event and the result", now()};
  result.recovery = contract::RecoveryFacts{now(), contract::event_type::finished};
  TRY(result.chain_head, ledger.chain_head(record.attempt.id));
  TRY_VOID(ledger.finish(result));
  return std::optional<contract::ResultRecord>(std::move(result));
}

// A supervisor of version 1 held no lock.
bool is_old_and_alive(const ledger::AttemptRecord& record) {
  return !record.draft.has_value() && !record.waiting && ::kill(record.attempt.supervisor_pid, 0) == 0;
}

Result<contract::ResultRecord> close_orphan(const Host& host, const AttemptLock& lock, ledger::Ledger ledger,
                                            const ledger::AttemptRecord& record) {
  TRY(const contract::Invocation invocation, contract::decode_invocation(record.invocation));
  TRY(const std::vector<contract::Event> events, ledger.events(record.attempt.id));
  TRY(Leftovers leftovers, Leftovers::find(lock.folder()));
  TRY(Account account, Account::resume(std::move(ledger), record, invocation, nullptr));
  return Recovery(host, lock.folder(), invocation, record, account, std::move(leftovers)).run(events);
}

// Somebody worked on it, or was applying it.
bool is_unfinished(const std::string& folder) {
  return exists(folder + "/lock") || exists(folder + "/applying");
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
    if (!contract::is_attempt_id(name)) continue;
    const std::string own = folder_of(state_dir, name);
    // Killed between the making of the folder and its lock: nothing is in it, and nobody would look for it.
    if (::rmdir(own.c_str()) == 0) continue;
    if (is_unfinished(own)) ids.insert(name);
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
    if (is_old_and_alive(*record)) return Closed{};
    if (record->stage == Stage::finished) return close_half_finished(ledger, *record);
    TRY(contract::ResultRecord result, close_orphan(host, *lock, std::move(ledger), *record));
    failpoint("closed-orphan");
    return Closed(std::move(result));
  }
  // Its supervisor went away behind the result, or before the admission. Whatever else lies in the folder is
  // not ours to judge.
  TRY(Leftovers leftovers, Leftovers::find(lock->folder()));
  TRY_VOID(leftovers.remove());
  TRY_VOID(mend_application(host, lock->folder()));
  return Closed{};
}

// A change whose publication had failed, of an attempt that has its result already. That stays as it was
// written; what has become of it since is in the ledger's table of publications.
Result<std::string> publish_again(const Host& host, ledger::Ledger& ledger, const std::string& id,
                                  const contract::ResultRecord& result) {
  TRY(const std::optional<AttemptLock> lock, AttemptLock::try_take(host.state_dir, id));
  // Somebody works on it, or its work was discarded.
  if (!lock.has_value() || !exists(store_path(lock->folder()))) return std::string();
  TRY(const auto row, ledger.publication(id));
  const std::string place = row.has_value() ? row->ref : handoff::branch_ref(host.config.branch_prefix, id);
  TRY(const clone::Source source, clone::open_source(result.clone->repository));
  TRY(const handoff::AttemptStore store, handoff::AttemptStore::open(store_path(lock->folder())));
  // What was signed for an earlier try keeps its id: of some kinds of keys no two signatures are the same.
  std::string commit = row.has_value() && is_object_id(row->commit) ? row->commit : *result.change.commit;
  if (!host.config.sign_key.empty()) {
    TRY(commit, store.sign(result.change.base, commit, host.config.sign_key));
  }
  const handoff::PublishInput wanted = publication_of(source, result.clone->head, place, commit);
  TRY(const ledger::ClaimAnswer claim,
      ledger.claim_publication({id, result.context, wanted.ref, wanted.commit}));
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
    // One that cannot be looked at is something to report.
    auto held = AttemptLock::is_held(state_dir, id);
    if (held && *held) continue;
    TRY(const auto record, ledger.find(id));
    if (held && record.has_value() && is_old_and_alive(*record)) continue;
    return true;
  }
  return false;
}

Result<RecoveryReport> recover(const Host& host, bool retry_publications) {
  RecoveryReport report;
  TRY(ledger::Ledger ledger, ledger::Ledger::open(ledger::ledger_path(host.state_dir)));
  // Their boxes are dying in any case, since their supervisor has gone.
  if (Status swept = sweep_groups(host); !swept) report.errors.push_back(std::move(swept).error());
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
