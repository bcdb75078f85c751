#include "attempt/bring_home.h"

#include <fmt/core.h>

#include <optional>

#include "attempt/take_work.h"
#include "base/failpoint.h"
#include "base/text.h"
#include "handoff/commit_object.h"
#include "handoff/judge.h"
#include "handoff/message.h"
#include "handoff/publish.h"

namespace cofferdam::attempt {
namespace {

using contract::Json;
using contract::Outcome;

constexpr std::size_t kMaxFilesListed = 10'000;
constexpr const char* kSignLater =
    "The change is kept unsigned in Cofferdam's store; once the key signs again, this signs and publishes "
    "it: "
    "cofferdam recover";

bool has_upper_layer(const BringHomeInput& in) {
  const auto& storage = in.account.result().storage;
  return storage.has_value() && storage->has_upper_layer();
}

WorkSource work_of(const BringHomeInput& in) {
  return {in.host, in.invocation, in.cloned, in.boxes, in.storage, in.attempt_dir, has_upper_layer(in)};
}

// What is refused is in the commit and in our store, and does not get out of there by itself.
void judge(const BringHomeInput& in, const handoff::Collected& collected) {
  contract::ChangeFacts& change = in.account.result().change;
  handoff::Verdict verdict =
      handoff::judge(change.findings, change.more_findings, collected, in.host.config.findings);
  change.findings = std::move(verdict.findings);
  change.more_findings = verdict.more;
  if (verdict.refused == 0) return;
  in.account.settlement().distrust(
      "handoff",
      "the change was not published for what is in it: " + verdict.refusal +
          "; look at it with cofferdam diff, and see [handoff] report in the configuration",
      now());
}

// Takes the change into the store, and into the account.
Result<handoff::AttemptStore> collect(const BringHomeInput& in, const std::string& tree) {
  TRY(CollectedWork work, collect_work(work_of(in), tree, in.interrupt));
  contract::ChangeFacts& change = in.account.result().change;
  change.file_count = work.collected.changes.size();
  for (const handoff::Change& one : work.collected.changes) {
    if (change.files.size() == kMaxFilesListed) break;
    change.files.push_back(one.file);
  }
  judge(in, work.collected);
  return std::move(work.store);
}

// On top of the last checkpoint, unless nothing has changed since.
Status commit(const BringHomeInput& in, const handoff::AttemptStore& store, const std::string& tree) {
  contract::ResultRecord& result = in.account.result();
  std::vector<contract::ChangeCommit>& commits = result.change.commits;
  if (commits.empty() || commits.back().tree != tree) {
    contract::ChangeCommit last;
    last.tree = tree;
    last.at = now();
    last.by = "end";
    const std::string parent = commits.empty() ? in.cloned.identity.base : commits.back().commit;
    TRY(last.commit, commit_work(work_of(in), store, tree, parent,
                                 handoff::commit_message(result.summary, in.invocation->attempt_id)));
    commits.push_back(std::move(last));
  }
  result.change.commit = commits.back().commit;
  return {};
}

// Nothing unsigned is published where the configuration asks for signatures.
Status check_signature(const BringHomeInput& in, const handoff::AttemptStore& store,
                       const std::string& commit) {
  const std::string& key = in.host.config.sign_key;
  if (key.empty()) return {};
  // Checkpoints below it get out with it.
  std::vector<std::string> commits = {commit};
  for (const contract::ChangeCommit& one : in.account.result().change.commits) commits.push_back(one.commit);
  for (const std::string& one : commits) {
    TRY(const bool is_signed, store.is_signed(one));
    if (is_signed) continue;
    TRY_VOID(handoff::check_sign_key(key));
    return make_error(Code::io, "the commit could not be signed");
  }
  return {};
}

void publication_stale(Account& account, const std::string& reason) {
  account.result().publication = {"stale", printable(reason, 2000)};
  account.settlement().stale(account.result().publication.reason, now());
}

void publication_failed(Account& account, const Error& error) {
  account.result().publication = {"failed", printable(error.line(), 2000)};
  account.settlement().publication_failed(account.result().publication.reason, now());
}

Result<std::string> publish_into(const BringHomeInput& in, const handoff::AttemptStore& store,
                                 const std::string& ref, const std::string& commit_id) {
  if (in.source == nullptr) {
    return make_error(Code::not_found, in.cloned.identity.repository + " cannot be opened",
                      handoff::kPublishLater);
  }
  Status trusted = check_signature(in, store, commit_id);
  if (!trusted) {
    Error error = std::move(trusted).error();
    if (!error.hint.empty()) error.hint += ". ";
    error.hint += kSignLater;
    return error;
  }
  return handoff::publish(store, publication_of(*in.source, in.cloned.identity.head, ref, commit_id));
}

// The claim is made before the ref and closed behind it, so that of two attempts on one context only one gets
// as far as the user's repository.
void publish(const BringHomeInput& in, const handoff::AttemptStore& store, const std::string& commit_id) {
  contract::ResultRecord& result = in.account.result();
  const Outcome outcome = in.account.settlement().outcome();
  if (outcome != Outcome::completed) {
    result.publication = {"none", fmt::format("only completed work is published; this attempt is {}",
                                              contract::outcome_name(outcome))};
    return;
  }
  // Of a publication that was broken off the claim still stands, and with it the ref.
  const std::string place = in.claimed_ref.empty()
                                ? handoff::branch_ref(in.host.config.branch_prefix, in.invocation->attempt_id)
                                : in.claimed_ref;
  if (in.reached != contract::Stage::publishing) {
    auto stale = in.account.claim_publication(place, commit_id);
    if (!stale) return publication_failed(in.account, stale.error());
    if (!stale->empty()) return publication_stale(in.account, *stale);
  }
  auto ref = publish_into(in, store, place, commit_id);
  if (ref) {
    result.change.ref = *ref;
    result.publication = {"published", ""};
  } else {
    publication_failed(in.account, ref.error());
  }
  Status closed = in.account.close_publication(ref.has_value(), result.publication.reason);
  if (!closed) in.account.broke(closed.error());
}

// Nothing was allowed to change; the box made it so, and this is the proof.
void prove_unchanged(const BringHomeInput& in, const handoff::Snapshot& snapshot) {
  contract::ResultRecord& result = in.account.result();
  result.publication = {"none", "a read-only phase publishes nothing"};
  if (snapshot.tree == in.cloned.identity.tree) return;
  in.account.settlement().distrust("work-tree", "the work tree of a read-only phase has changed", now());
}

// True when there is a commit to be published.
Result<bool> make_commit(const BringHomeInput& in) {
  contract::ResultRecord& result = in.account.result();
  auto taken = take_snapshot(work_of(in), in.interrupt);
  if (!taken) {
    if (contract::is_read_only(in.invocation->phase)) return std::move(taken).error();
    return keep_files(work_of(in), in.interrupt, std::move(taken).error());
  }
  handoff::Snapshot snapshot = *std::move(taken);
  result.change.tree = snapshot.tree;
  result.change.ignored_files = snapshot.ignored_files;
  result.change.ignored = snapshot.ignored;
  result.change.findings = snapshot.findings;
  result.change.more_findings = snapshot.more_findings;
  if (in.reached < contract::Stage::snapshot) {
    in.account.event(contract::event_type::snapshot,
                     {{"tree", snapshot.tree},
                      {"changed", snapshot.tree != in.cloned.identity.tree},
                      {"findings", contract::json_count(snapshot.findings.size() + snapshot.more_findings)}});
  }
  if (contract::is_read_only(in.invocation->phase)) {
    prove_unchanged(in, snapshot);
    return false;
  }
  const bool as_before = snapshot.tree == in.cloned.identity.tree;
  if (as_before && result.change.commits.empty()) {
    result.publication = {"none", "nothing was changed"};
    return false;
  }
  // Of what is as it was before there is no pack; a checkpoint made the store.
  auto collected =
      as_before ? handoff::AttemptStore::open(store_path(in.attempt_dir)) : collect(in, snapshot.tree);
  if (!collected) return keep_files(work_of(in), in.interrupt, std::move(collected).error());
  const handoff::AttemptStore store = *std::move(collected);
  TRY_VOID(commit(in, store, snapshot.tree));
  in.account.event(contract::event_type::committed,
                   {{"commit", *result.change.commit}, {"tree", snapshot.tree}});
  return true;
}

}  // namespace

handoff::PublishInput publication_of(const clone::Source& source, const std::string& base_head,
                                     const std::string& ref, const std::string& commit) {
  handoff::PublishInput wanted;
  wanted.git_dir = source.git_dir;
  wanted.run_as = source.run_as;
  wanted.commit = commit;
  wanted.base_head = base_head;
  wanted.ref = ref;
  return wanted;
}

Status bring_home(const BringHomeInput& in) {
  if (in.reached >= contract::Stage::published) return {};
  if (in.reached < contract::Stage::committed) {
    TRY(const bool committed, make_commit(in));
    if (!committed) return {};
  }
  TRY(const handoff::AttemptStore store, handoff::AttemptStore::open(store_path(in.attempt_dir)));
  publish(in, store, in.account.result().change.commit.value_or(""));
  return {};
}

}  // namespace cofferdam::attempt
