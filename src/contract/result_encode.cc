#include <cmath>
#include <utility>

#include "contract/json.h"
#include "contract/result.h"
#include "contract/result_shape.h"

namespace cofferdam::contract {
namespace {

Json name_json(const std::string& text) {
  return json_text(text, kMaxNameBytes);
}
Json line_json(const std::string& text) {
  return json_text(text, kMaxLineBytes);
}
// For what is empty when there is none.
Json text_or_null(const std::string& text, std::size_t max_bytes) {
  return text.empty() ? Json(nullptr) : json_text(text, max_bytes);
}
Json time_or_null(const std::optional<Timestamp>& time) {
  return time.has_value() ? Json(to_rfc3339(*time)) : Json(nullptr);
}
Json number_or_null(const std::optional<int>& number) {
  return number.has_value() ? Json(*number) : Json(nullptr);
}
Json id_or_null(const std::optional<std::string>& id) {
  return id.has_value() ? name_json(*id) : Json(nullptr);
}

Json process_json(const ProcessFacts& process) {
  return {{"exit_code", number_or_null(process.exit_code)},
          {"signal", number_or_null(process.signal)},
          {"started_at", time_or_null(process.started_at)},
          {"ended_at", time_or_null(process.ended_at)}};
}

Json cancel_json(const std::optional<CancelFacts>& cancel) {
  if (!cancel.has_value()) return nullptr;
  return {{"requested_at", to_rfc3339(cancel->requested_at)},
          {"by", name_json(cancel->by)},
          {"reason", line_json(cancel->reason)}};
}

// Appends until one of the bounds is reached; the record's own counts say how many there were.
class BoundedList {
 public:
  bool full() const { return full_ || list_.size() == kMaxListed; }
  void add(Json entry) {
    bytes_ += canonical(entry).size() + 1;
    full_ = bytes_ > kMaxListedBytes;
    if (!full_) list_.push_back(std::move(entry));
  }
  Json take() { return std::move(list_); }

 private:
  Json list_ = Json::array();
  std::size_t bytes_ = 0;
  bool full_ = false;
};

Json commits_json(const std::vector<ChangeCommit>& commits) {
  Json out = Json::array();
  for (const ChangeCommit& one : commits) {
    if (out.size() == kMaxCommits) break;
    out.push_back({{"commit", name_json(one.commit)},
                   {"tree", name_json(one.tree)},
                   {"at", to_rfc3339(one.at)},
                   {"by", name_json(one.by)}});
  }
  return out;
}

Json ignored_json(const std::vector<std::string>& ignored) {
  Json out = Json::array();
  for (const std::string& path : ignored) {
    if (out.size() < kMaxIgnoredListed) out.push_back(json_text(path, kMaxChangedPathBytes));
  }
  return out;
}

Json change_json(const ChangeFacts& change) {
  BoundedList files;
  for (const ChangedFile& file : change.files) {
    if (files.full()) break;
    files.add({{"path", json_text(file.path, kMaxChangedPathBytes)}, {"status", name_json(file.status)}});
  }
  BoundedList findings;
  for (const Finding& finding : change.findings) {
    if (findings.full()) break;
    findings.add({{"rule", name_json(finding.rule)},
                  {"path", json_text(finding.path, kMaxChangedPathBytes)},
                  {"action", name_json(finding.action)}});
  }
  return {{"base", text_or_null(change.base, kMaxNameBytes)},
          {"commits", commits_json(change.commits)},
          {"commit", id_or_null(change.commit)},
          {"tree", id_or_null(change.tree)},
          {"ref", change.ref.has_value() ? line_json(*change.ref) : Json(nullptr)},
          {"files", files.take()},
          {"file_count", json_count(change.file_count)},
          {"findings", findings.take()},
          {"more_findings", json_count(change.more_findings)},
          {"ignored_files", json_count(change.ignored_files)},
          {"ignored", ignored_json(change.ignored)}};
}

// Agents report such numbers: only a sane one is a cost.
Json cost_json(const std::optional<double>& cost) {
  if (cost.has_value() && *cost >= 0 && *cost <= kMaxCostUsd) return *cost;
  return nullptr;
}

Json usage_json(const Usage& usage) {
  return {
      {"requests", json_count(usage.requests)},
      {"tokens", {{"input", json_count(usage.input_tokens)}, {"output", json_count(usage.output_tokens)}}},
      {"cost_usd", cost_json(usage.cost_usd)},
      {"agent_cost_usd", cost_json(usage.agent_cost_usd)}};
}

Json resources_json(const Resources& resources) {
  return {{"peak_memory", json_count(resources.peak_memory)},
          {"peak_pids", json_count(resources.peak_pids)},
          {"cpu_ms", json_count(resources.cpu_ms)},
          {"work_bytes", json_count(resources.work_bytes)},
          {"work_inodes", json_count(resources.work_inodes)}};
}

Json egress_json(const EgressFacts& egress) {
  Json destinations = Json::array();
  for (const DestinationFacts& one : egress.destinations) {
    if (destinations.size() == kMaxDestinations) break;
    destinations.push_back({{"host", name_json(one.host)},
                            {"port", one.port},
                            {"connections", json_count(one.connections)},
                            {"denied", json_count(one.denied)},
                            {"sent", json_count(one.sent)},
                            {"received", json_count(one.received)}});
  }
  return {{"requests", json_count(egress.requests)},
          {"denied", json_count(egress.denied)},
          {"destinations", std::move(destinations)}};
}

Json controls_json(const std::vector<ControlFact>& controls) {
  Json out = Json::array();
  for (const ControlFact& control : controls) {
    if (out.size() == kMaxControls) break;
    out.push_back({{"name", name_json(control.name)},
                   {"required", control.required},
                   {"enforced", control.enforced},
                   {"proof", line_json(control.proof)}});
  }
  return out;
}

Json clone_json(const std::optional<CloneIdentity>& clone) {
  if (!clone.has_value()) return nullptr;
  return {{"repository", json_text(clone->repository, kMaxChangedPathBytes)},
          {"head", name_json(clone->head)},
          {"base", name_json(clone->base)},
          {"tree", name_json(clone->tree)},
          {"history", history_name(clone->history)},
          {"object_format", name_json(clone->object_format)},
          {"id", name_json(clone->id)}};
}

Json source_json(const std::optional<SourceFacts>& source) {
  if (!source.has_value()) return nullptr;
  return {{"kind", name_json(source->kind)},
          {"shallow", source->shallow},
          {"partial", source->partial},
          {"dirty_files", json_count(source->dirty_files)},
          {"untracked_files", json_count(source->untracked_files)},
          {"submodules", json_count(source->submodules)},
          {"lfs_files", json_count(source->lfs_files)}};
}

Json context_json(const std::optional<CapturedContext>& context) {
  if (!context.has_value()) return nullptr;
  Json files = Json::array();
  for (const ContextFile& file : context->files) {
    if (files.size() == kMaxContextFiles) break;
    files.push_back({{"path", json_text(file.path, kMaxLineBytes)}, {"sha256", name_json(file.sha256)}});
  }
  return {{"name", name_json(context->name)},
          {"version", json_count(context->version)},
          {"sha256", name_json(context->sha256)},
          {"files", std::move(files)}};
}

Json settlement_json(const SettlementFacts& settlement) {
  Json left = Json::array();
  for (const std::string& what : settlement.left) {
    if (left.size() < kMaxLeft) left.push_back(line_json(what));
  }
  return {{"box_gone_at", time_or_null(settlement.box_gone_at)},
          {"killed", settlement.killed},
          {"took_ms", json_count(settlement.took_ms)},
          {"left", std::move(left)}};
}

Json output_json(const OutputFacts& output) {
  return {{"stdout_bytes", json_count(output.stdout_bytes)},
          {"stderr_bytes", json_count(output.stderr_bytes)},
          {"dropped_bytes", json_count(output.dropped_bytes)},
          {"dropped_lines", json_count(output.dropped_lines)},
          {"events", json_count(output.events)}};
}

Json storage_json(const std::optional<StorageFacts>& storage) {
  if (!storage.has_value()) return nullptr;
  return {{"kind", name_json(storage->kind)},
          {"kept_ms", json_count(storage->kept_ms)},
          {"tree", text_or_null(storage->tree, kMaxNameBytes)},
          {"tree_reason", line_json(storage->tree_reason)}};
}

Json recovery_json(const std::optional<RecoveryFacts>& recovery) {
  if (!recovery.has_value()) return nullptr;
  return {{"at", to_rfc3339(recovery->at)}, {"stage", name_json(recovery->stage)}};
}

}  // namespace

namespace {

// Of the host's /usr there is no digest.
Json image_json(const ImageFacts& image) {
  Json out = {{"kind", name_json(image.kind)}, {"pinned", image.pinned}};
  if (!image.digest.empty()) out["digest"] = name_json(image.digest);
  return out;
}

}  // namespace

std::string encode_result(const ResultRecord& result) {
  const Json none = Json::array();  // lists that this version never fills
  const Json document = {
      {"schema", kResultSchema},
      {"attempt_id", name_json(result.attempt_id)},
      {"invocation_sha256", name_json(result.invocation_sha256)},
      {"phase", phase_name(result.phase)},
      {"outcome", outcome_name(result.outcome)},
      {"cause",
       {{"control", name_json(result.cause.control)},
        {"detail", line_json(result.cause.detail)},
        {"at", to_rfc3339(result.cause.at)}}},
      {"process", process_json(result.process)},
      {"cancel", cancel_json(result.cancel)},
      {"settlement", settlement_json(result.settlement)},
      {"answered_at", time_or_null(result.answered_at)},
      {"output", output_json(result.output)},
      {"storage", storage_json(result.storage)},
      {"recovery", recovery_json(result.recovery)},
      {"answer", result.answer.has_value() ? json_text(*result.answer, kMaxAnswerBytes) : Json(nullptr)},
      {"summary", json_text(result.summary, kMaxSummaryBytes)},
      {"change", change_json(result.change)},
      {"checks", none},
      {"usage", usage_json(result.usage)},
      {"resources", resources_json(result.resources)},
      {"egress", egress_json(result.egress)},
      {"controls", controls_json(result.controls)},
      {"publication",
       {{"state", result.publication.state.empty() ? Json("none") : name_json(result.publication.state)},
        {"reason", line_json(result.publication.reason)}}},
      {"parent", nullptr},
      {"setup_layer", nullptr},
      {"vendor_tools", result.vendor_tools},
      {"shell", shell_name(result.shell)},
      {"agent",
       {{"name", name_json(result.agent.name)},
        {"version", text_or_null(result.agent.version, kMaxNameBytes)},
        {"model", text_or_null(result.agent.model, kMaxNameBytes)}}},
      {"image", image_json(result.image)},
      {"backend", name_json(result.backend)},
      {"vendor_upstream", text_or_null(result.vendor_upstream, kMaxLineBytes)},
      {"clone", clone_json(result.clone)},
      {"source", source_json(result.source)},
      {"context", context_json(result.context)},
      {"instructions", none},
      {"created_at", to_rfc3339(result.created_at)},
      {"chain_head", text_or_null(result.chain_head, kMaxNameBytes)},
  };
  return canonical(document);
}

}  // namespace cofferdam::contract
