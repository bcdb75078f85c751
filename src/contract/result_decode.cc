#include <utility>

#include "base/text.h"
#include "contract/json.h"
#include "contract/result.h"
#include "contract/result_shape.h"
#include "contract/rules.h"

namespace cofferdam::contract {
namespace {

constexpr TextBounds kName{1, kMaxNameBytes};
constexpr TextBounds kLine{0, kMaxLineBytes};
constexpr TextBounds kPath{1, kMaxChangedPathBytes};

std::string checked(ObjectReader* in, const char* key, bool (*valid)(std::string_view), const char* problem) {
  std::string text = in->text(key, {0, kMaxNameBytes});
  if (!valid(text)) in->fail(key, problem);
  return text;
}

std::optional<std::string> object_id(ObjectReader* in, const char* key) {
  auto id = in->maybe_text(key, kName, Absent::only_null);
  if (id.has_value() && !is_object_id(*id)) in->fail(key, "is not a full object id");
  return id;
}

std::string chosen(ObjectReader* in, const char* key, const std::vector<std::string>& names) {
  return names[in->choice(key, names)];
}

std::uint64_t count(ObjectReader* in, const char* key) {
  return in->integer(key, 0, kMaxJsonInteger);
}

std::optional<int> small(ObjectReader* in, const char* key, std::uint64_t min, std::uint64_t max) {
  auto value = in->maybe_integer(key, min, max, Absent::only_null);
  if (!value.has_value()) return std::nullopt;
  return static_cast<int>(*value);
}

Cause read_cause(ObjectReader in) {
  Cause out;
  out.control = in.text("control", kName);
  out.detail = in.text("detail", kLine);
  out.at = in.timestamp("at");
  in.finish();
  return out;
}

ProcessFacts read_process(ObjectReader in) {
  ProcessFacts out;
  out.exit_code = small(&in, "exit_code", 0, 255);
  out.signal = small(&in, "signal", 1, 64);
  out.started_at = in.maybe_timestamp("started_at", Absent::only_null);
  out.ended_at = in.maybe_timestamp("ended_at", Absent::only_null);
  in.finish();
  return out;
}

CancelFacts read_cancel(ObjectReader in) {
  CancelFacts out;
  out.requested_at = in.timestamp("requested_at");
  out.by = chosen(&in, "by", {"signal", "stdin", "command"});
  out.reason = in.text("reason", kLine);
  in.finish();
  return out;
}

SettlementFacts read_settlement(ObjectReader in) {
  SettlementFacts out;
  out.box_gone_at = in.maybe_timestamp("box_gone_at", Absent::only_null);
  out.killed = in.boolean("killed");
  out.took_ms = count(&in, "took_ms");
  out.left = in.texts("left", 0, kMaxLeft, kLine);
  in.finish();
  return out;
}

OutputFacts read_output(ObjectReader in) {
  OutputFacts out;
  out.stdout_bytes = count(&in, "stdout_bytes");
  out.stderr_bytes = count(&in, "stderr_bytes");
  out.dropped_bytes = count(&in, "dropped_bytes");
  out.dropped_lines = count(&in, "dropped_lines");
  out.events = count(&in, "events");
  in.finish();
  return out;
}

StorageFacts read_storage(ObjectReader in) {
  StorageFacts out;
  out.kind = in.text("kind", kName);
  out.kept_ms = count(&in, "kept_ms");
  out.tree = in.maybe_text("tree", kName, Absent::allowed).value_or("");
  if (in.has("tree_reason")) out.tree_reason = in.text("tree_reason", kLine);
  in.finish();
  return out;
}

RecoveryFacts read_recovery(ObjectReader in) {
  RecoveryFacts out;
  out.at = in.timestamp("at");
  out.stage = in.text("stage", kName);
  in.finish();
  return out;
}

std::vector<ChangedFile> read_files(ObjectReader* in) {
  std::vector<ChangedFile> out;
  for (ObjectReader& file : in->objects("files", 0, kMaxListed)) {
    out.push_back({file.text("path", kPath),
                   chosen(&file, "status", {"added", "modified", "deleted", "type-changed"})});
    file.finish();
  }
  return out;
}

std::vector<Finding> read_findings(ObjectReader* in) {
  std::vector<Finding> out;
  for (ObjectReader& finding : in->objects("findings", 0, kMaxListed)) {
    Finding one;
    one.rule = finding.text("rule", kName);
    one.path = finding.text("path", {0, kMaxChangedPathBytes});
    one.action = chosen(&finding, "action", {"reported", "dropped", "refused"});
    finding.finish();
    out.push_back(std::move(one));
  }
  return out;
}

std::vector<ChangeCommit> read_commits(ObjectReader* in) {
  std::vector<ChangeCommit> out;
  for (ObjectReader& commit : in->objects("commits", 0, kMaxCommits)) {
    ChangeCommit one;
    one.commit = checked(&commit, "commit", is_object_id, "is not a full object id");
    one.tree = checked(&commit, "tree", is_object_id, "is not a full object id");
    one.at = commit.timestamp("at");
    one.by = chosen(&commit, "by", {"command", "agent", "end"});
    commit.finish();
    out.push_back(std::move(one));
  }
  return out;
}

ChangeFacts read_change(ObjectReader in) {
  ChangeFacts out;
  out.base = object_id(&in, "base").value_or("");
  out.commit = object_id(&in, "commit");
  out.tree = object_id(&in, "tree");
  out.ref = in.maybe_text("ref", {1, kMaxLineBytes}, Absent::only_null);
  out.files = read_files(&in);
  out.file_count = count(&in, "file_count");
  out.findings = read_findings(&in);
  if (in.has("more_findings")) out.more_findings = count(&in, "more_findings");
  out.ignored_files = count(&in, "ignored_files");
  if (in.has("ignored")) out.ignored = in.texts("ignored", 0, kMaxIgnoredListed, kPath);
  if (in.has("commits")) out.commits = read_commits(&in);
  in.finish();
  return out;
}

Usage read_usage(ObjectReader in) {
  Usage out;
  out.requests = count(&in, "requests");
  ObjectReader tokens = in.object("tokens");
  out.input_tokens = count(&tokens, "input");
  out.output_tokens = count(&tokens, "output");
  tokens.finish();
  out.cost_usd = in.maybe_number("cost_usd", 0, kMaxCostUsd, Absent::only_null);
  out.agent_cost_usd = in.maybe_number("agent_cost_usd", 0, kMaxCostUsd, Absent::only_null);
  in.finish();
  return out;
}

Resources read_resources(ObjectReader in) {
  Resources out;
  out.peak_memory = count(&in, "peak_memory");
  out.peak_pids = count(&in, "peak_pids");
  out.cpu_ms = count(&in, "cpu_ms");
  out.work_bytes = count(&in, "work_bytes");
  out.work_inodes = count(&in, "work_inodes");
  in.finish();
  return out;
}

EgressFacts read_egress(ObjectReader in) {
  EgressFacts out;
  out.requests = count(&in, "requests");
  out.denied = count(&in, "denied");
  for (ObjectReader& one : in.objects("destinations", 0, kMaxDestinations)) {
    DestinationFacts facts;
    facts.host = one.text("host", {1, kMaxNameBytes});
    facts.port = static_cast<std::uint16_t>(one.integer("port", 1, 65535));
    facts.connections = count(&one, "connections");
    facts.denied = count(&one, "denied");
    facts.sent = count(&one, "sent");
    facts.received = count(&one, "received");
    one.finish();
    out.destinations.push_back(std::move(facts));
  }
  in.finish();
  return out;
}

std::vector<ControlFact> read_controls(ObjectReader* in) {
  std::vector<ControlFact> out;
  for (ObjectReader& control : in->objects("controls", 0, kMaxControls)) {
    ControlFact one;
    one.name = control.text("name", kName);
    one.required = control.boolean("required");
    one.enforced = control.boolean("enforced");
    one.proof = control.text("proof", kLine);
    control.finish();
    out.push_back(std::move(one));
  }
  return out;
}

Publication read_publication(ObjectReader in) {
  Publication out;
  out.state = chosen(&in, "state", {"published", "none", "failed", "stale"});
  out.reason = in.text("reason", kLine);
  in.finish();
  return out;
}

AgentFacts read_agent(ObjectReader in) {
  AgentFacts out;
  out.name = in.text("name", kName);
  out.version = in.maybe_text("version", kName, Absent::only_null).value_or("");
  out.model = in.maybe_text("model", kName, Absent::only_null).value_or("");
  in.finish();
  return out;
}

ImageFacts read_image(ObjectReader in) {
  ImageFacts out;
  out.kind = in.text("kind", kName);
  out.pinned = in.boolean("pinned");
  out.digest = in.maybe_text("digest", kName, Absent::allowed).value_or("");
  in.finish();
  return out;
}

CloneIdentity read_clone(ObjectReader in) {
  CloneIdentity out;
  out.repository = in.text("repository", kPath);
  out.head = checked(&in, "head", is_object_id, "is not a full object id");
  out.base = in.has("base") ? checked(&in, "base", is_object_id, "is not a full object id") : out.head;
  out.tree = checked(&in, "tree", is_object_id, "is not a full object id");
  if (in.has("history")) {
    out.history = chosen(&in, "history", {"full", "none"}) == "none" ? History::none : History::full;
  }
  out.object_format = chosen(&in, "object_format", {"sha1", "sha256"});
  out.id = checked(&in, "id", is_sha256, "is not a SHA-256");
  in.finish();
  return out;
}

SourceFacts read_source(ObjectReader in) {
  SourceFacts out;
  out.kind = chosen(&in, "kind", {"work-tree", "linked-work-tree", "submodule", "bare"});
  out.shallow = in.boolean("shallow");
  out.partial = in.boolean("partial");
  out.dirty_files = count(&in, "dirty_files");
  out.untracked_files = count(&in, "untracked_files");
  out.submodules = count(&in, "submodules");
  out.lfs_files = count(&in, "lfs_files");
  in.finish();
  return out;
}

CapturedContext read_context(ObjectReader in) {
  CapturedContext out;
  out.name = in.text("name", {1, 128});
  out.version = in.integer("version", 1, kMaxJsonInteger);
  out.sha256 = checked(&in, "sha256", is_sha256, "is not a SHA-256");
  for (ObjectReader& file : in.objects("files", 0, kMaxContextFiles)) {
    out.files.push_back(
        {file.text("path", {1, kMaxLineBytes}), checked(&file, "sha256", is_sha256, "is not a SHA-256")});
    file.finish();
  }
  in.finish();
  return out;
}

// Records of earlier programs lack keys that were added since, and stay readable: `in.has()` and
// Absent::allowed.

// Keys that callers may rely on and that this version gives one value only.
void read_reserved(ObjectReader* in) {
  for (const char* key : {"checks", "instructions"}) in->texts(key, 0, 0, {});
  in->null("parent");
  in->null("setup_layer");
}

void read_heading(ObjectReader* in, ResultRecord* out) {
  in->constant("schema", kResultSchema);
  out->attempt_id = checked(in, "attempt_id", is_attempt_id, "is not an attempt id");
  out->invocation_sha256 = checked(in, "invocation_sha256", is_sha256, "is not a SHA-256");
  out->phase = phase_from_name(chosen(in, "phase", {"planning", "question", "review", "implementation"}))
                   .value_or(Phase::question);
  const std::string outcome =
      chosen(in, "outcome", {"completed", "failed", "refused", "limit", "cancelled", "setup-failed", "lost"});
  out->outcome = outcome_from_name(outcome).value_or(Outcome::lost);
  out->created_at = in->timestamp("created_at");
  out->chain_head = in->maybe_text("chain_head", kName, Absent::only_null).value_or("");
  if (!out->chain_head.empty() && !is_sha256(out->chain_head)) in->fail("chain_head", "is not a SHA-256");
}

}  // namespace

Result<ResultRecord> decode_result(std::string_view json) {
  TRY(Json document, parse_json(json, kMaxResultBytes));
  JsonFault fault;
  ObjectReader in(document, "$", &fault);
  ResultRecord out;
  read_heading(&in, &out);
  read_reserved(&in);
  out.cause = read_cause(in.object("cause"));
  out.process = read_process(in.object("process"));
  if (auto cancel = in.maybe_object("cancel", Absent::only_null)) out.cancel = read_cancel(*cancel);
  out.settlement = read_settlement(in.object("settlement"));
  out.answered_at = in.maybe_timestamp("answered_at", Absent::only_null);
  out.output = read_output(in.object("output"));
  if (auto storage = in.maybe_object("storage", Absent::only_null)) out.storage = read_storage(*storage);
  if (auto recovery = in.maybe_object("recovery", Absent::only_null)) out.recovery = read_recovery(*recovery);
  out.answer = in.maybe_text("answer", {0, kMaxAnswerBytes}, Absent::only_null);
  out.summary = in.text("summary", {0, kMaxSummaryBytes});
  out.change = read_change(in.object("change"));
  out.usage = read_usage(in.object("usage"));
  out.resources = read_resources(in.object("resources"));
  out.egress = read_egress(in.object("egress"));
  out.controls = read_controls(&in);
  out.publication = read_publication(in.object("publication"));
  out.agent = read_agent(in.object("agent"));
  out.image = read_image(in.object("image"));
  out.backend = chosen(&in, "backend", {"native", "docker"});
  out.shell = static_cast<Shell>(in.choice("shell", {"sandboxed", "none"}));
  out.vendor_tools = in.texts("vendor_tools", 0, 64, {1, 64});
  out.vendor_upstream = in.maybe_text("vendor_upstream", {1, kMaxLineBytes}, Absent::only_null).value_or("");
  if (auto clone = in.maybe_object("clone", Absent::only_null)) out.clone = read_clone(*clone);
  if (auto source = in.maybe_object("source", Absent::allowed)) out.source = read_source(*source);
  if (auto context = in.maybe_object("context", Absent::only_null)) out.context = read_context(*context);
  in.finish();
  if (fault.failed()) return fault.error();
  return out;
}

}  // namespace cofferdam::contract
