#include "attempt/bring_home.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <optional>

#include "base/failpoint.h"
#include "base/file.h"
#include "base/text.h"
#include "handoff/collect.h"
#include "handoff/commit_object.h"
#include "handoff/judge.h"
#include "handoff/keep.h"
#include "handoff/message.h"
#include "handoff/publish.h"
#include "handoff/snapshot.h"

namespace cofferdam::attempt {
namespace {

using contract::Json;
using contract::Outcome;

constexpr std::size_t kMaxFilesListed = 10'000;

Error box_failed(const std::string& kind, const sandbox::BoxOutput& output) {
  return make_error(Code::internal, fmt::format("the {} box ended with {}: {}", kind,
                                                output.status.describe(), printable(trim(output.err), 500)));
}

bool has_upper_layer(const BringHomeInput& in) {
  const auto& storage = in.account.result().storage;
  return storage.has_value() && storage->tree == "overlay";
}

Result<handoff::Snapshot> take_snapshot(const BringHomeInput& in) {
  handoff::SnapshotInput wanted;
  wanted.base_tree = in.cloned.identity.tree;
  wanted.overlay = has_upper_layer(in);
  wanted.work_bytes = in.invocation->limits.work_bytes;
  wanted.work_inodes = in.invocation->limits.work_inodes;
  TRY(sandbox::BoxOutput output, sandbox::run_box(in.boxes, in.storage, handoff::snapshot_profile(wanted),
                                                  handoff::kMaxSnapshotRecord, in.interrupt));
  auto snapshot = handoff::decode_snapshot(output.out);
  if (!snapshot && snapshot.error().code == Code::protocol && !output.status.success())
    return box_failed("snapshot", output);
  return snapshot;
}

std::string store_path(const BringHomeInput& in) {
  return in.attempt_dir + "/store.git";
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

// Verifies the pack in a box of its own and takes it into the attempt's store.
Result<handoff::AttemptStore> collect(const BringHomeInput& in, const std::string& tree) {
  // Of a handoff that was broken off there may be half a store.
  if (in.reached != contract::Stage::settled) TRY_VOID(remove_tree(store_path(in)));
  TRY(handoff::AttemptStore store,
      handoff::AttemptStore::create(store_path(in), in.cloned.identity, in.cloned.packs));
  failpoint("store-made");
  TRY(handoff::Incoming incoming, store.open_incoming());
  handoff::CollectInput wanted;
  wanted.base_tree = in.cloned.identity.tree;
  wanted.tree = tree;
  wanted.work_bytes = in.invocation->limits.work_bytes;
  wanted.work_inodes = in.invocation->limits.work_inodes;
  wanted.pack_fd = incoming.pack.get();
  wanted.index_fd = incoming.index.get();
  TRY(sandbox::BoxOutput output, sandbox::run_box(in.boxes, in.storage, handoff::collect_profile(wanted),
                                                  handoff::kMaxCollectRecord, in.interrupt));
  auto collected = handoff::decode_collect(output.out);
  if (!collected && collected.error().code == Code::protocol && !output.status.success())
    return box_failed("collect", output);
  if (!collected) return collected.error();
  if (collected->objects > 0) TRY_VOID(store.adopt(std::move(incoming)));
  failpoint("pack-adopted");
  contract::ChangeFacts& change = in.account.result().change;
  change.file_count = collected->changes.size();
  for (const handoff::Change& one : collected->changes) {
    if (change.files.size() == kMaxFilesListed) break;
    change.files.push_back(one.file);
  }
  judge(in, *collected);
  return store;
}

Result<std::string> commit(const BringHomeInput& in, const handoff::AttemptStore& store,
                           const std::string& tree) {
  handoff::CommitInput wanted;
  wanted.tree = tree;
  wanted.parent = in.cloned.identity.base;
  wanted.author_name = in.host.config.author_name;
  wanted.author_email = in.host.config.author_email;
  wanted.time = now();
  wanted.message = handoff::commit_message(in.account.result().summary, in.invocation->attempt_id);
  wanted.sign_key = in.host.config.sign_key;
  auto id = store.commit(wanted);
  if (id || wanted.sign_key.empty()) return id;
  wanted.sign_key.clear();  // the work is kept all the same; publish() sees that it is not signed
  return store.commit(wanted);
}

// Nothing unsigned is published where the configuration asks for signatures.
Status check_signature(const BringHomeInput& in, const handoff::AttemptStore& store,
                       const std::string& commit) {
  const std::string& key = in.host.config.sign_key;
  if (key.empty()) return {};
  TRY(const bool is_signed, store.is_signed(commit));
  if (is_signed) return {};
  TRY_VOID(handoff::check_sign_key(key));
  return make_error(Code::io, "the commit could not be signed");
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
  Status trusted = check_signature(in, store, commit_id);
  if (!trusted) {
    Error error = std::move(trusted).error();
    error.hint = fmt::format("the work is kept, unsigned: cofferdam apply {}", in.invocation->attempt_id);
    return publication_failed(in.account, error);
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

// Of a work tree that cannot become a commit nothing is lost: its files go into an archive, unread by
// anybody. Where it is, or why there is none.
std::string keep_files(const BringHomeInput& in) {
  const auto failed = [](const Error& error) { return "; its files could not be kept: " + error.line(); };
  const std::string path = in.attempt_dir + "/refused.tar";
  ::unlink(path.c_str());  // half of one, of a handoff that was broken off
  auto file = open_file(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW);
  if (!file) return failed(file.error());
  handoff::KeepInput wanted;
  wanted.overlay = has_upper_layer(in);
  wanted.work_bytes = in.invocation->limits.work_bytes;
  wanted.work_inodes = in.invocation->limits.work_inodes;
  wanted.archive_fd = file->get();
  auto output = sandbox::run_box(in.boxes, in.storage, handoff::keep_profile(wanted), 4096, in.interrupt);
  if (!output) return failed(output.error());
  if (!output->status.success()) return failed(box_failed("keep", *output));
  return "; its files are kept in " + path;
}

// True when there is a commit to be published.
Result<bool> make_commit(const BringHomeInput& in) {
  contract::ResultRecord& result = in.account.result();
  auto taken = take_snapshot(in);
  if (!taken) {
    Error error = std::move(taken).error();
    const bool refused = error.code == Code::denied || error.code == Code::exhausted;
    if (refused && !contract::is_read_only(in.invocation->phase)) error.what += keep_files(in);
    return error;
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
  if (snapshot.tree == in.cloned.identity.tree) {
    result.publication = {"none", "nothing was changed"};
    return false;
  }
  auto collected = collect(in, snapshot.tree);
  if (!collected) {
    Error error = std::move(collected).error();
    if (error.code == Code::denied || error.code == Code::exhausted) error.what += keep_files(in);
    return error;
  }
  const handoff::AttemptStore store = *std::move(collected);
  TRY(result.change.commit, commit(in, store, snapshot.tree));
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
  TRY(const handoff::AttemptStore store, handoff::AttemptStore::open(store_path(in)));
  publish(in, store, in.account.result().change.commit.value_or(""));
  return {};
}

}  // namespace cofferdam::attempt
