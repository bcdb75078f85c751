#include "cli/retention.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/text.h"
#include "cli/table.h"
#include "contract/config.h"
#include "contract/json.h"

namespace cofferdam::cli {

using contract::Json;

Result<std::chrono::milliseconds> parse_age(std::string_view text) {
  constexpr std::size_t kMaxDigits = 5;  // 99 999 days
  const bool days = text.size() > 1 && text.size() <= kMaxDigits + 1 && text.back() == 'd' &&
                    text.find_first_not_of("0123456789") == text.size() - 1;
  if (!days) {
    auto parsed = contract::parse_duration(text);
    if (parsed) return parsed;
    return make_error(Code::usage, "not an age: \"" + printable(text, 64) + "\"",
                      "write it as 30d, 12h or 90m");
  }
  std::int64_t number = 0;
  for (const char digit : text.substr(0, text.size() - 1)) number = number * 10 + (digit - '0');
  return std::chrono::milliseconds(std::chrono::hours(24 * number));
}

std::string unpublished_work(const std::string& stored, const std::optional<ledger::PublicationRecord>& later,
                             bool has_store) {
  if (!has_store || (later && later->state == "published")) return {};
  auto result = contract::decode_result(stored);
  if (!result) return "its result cannot be read, so nobody knows whether its work was handed off";
  if (result->change.ref) return {};
  if (result->change.commit) {
    return fmt::format("its work (commit {}) was never handed off", one_line(*result->change.commit, 12));
  }
  if (result->publication.state == "failed") return "its work was never handed off, and is in no commit";
  return {};
}

Result<std::string> unpublished_work(ledger::Ledger& ledger, const ledger::AttemptRecord& record,
                                     bool has_store) {
  TRY(const std::optional<ledger::PublicationRecord> later, ledger.publication(record.attempt.id));
  return unpublished_work(record.result.value_or(""), later, has_store);
}

PrunePlan plan_prune(const std::vector<ledger::Attempt>& attempts, Timestamp before, std::size_t keep) {
  PrunePlan plan;
  std::size_t finished = 0;
  for (const ledger::Attempt& attempt : attempts) {
    if (!attempt.finished || !attempt.finished_at) {
      ++plan.running;
    } else if (++finished <= keep) {
      ++(attempt.finished_at->ms < before.ms ? plan.newest : plan.young);
    } else if (attempt.finished_at->ms < before.ms) {
      plan.old.push_back(attempt);
    } else {
      ++plan.young;
    }
  }
  std::reverse(plan.old.begin(), plan.old.end());
  return plan;
}

std::string prune_text(const PruneReport& report) {
  std::string out;
  const char* pruned = report.dry_run ? "would prune" : "pruned";
  for (const std::string& id : report.pruned) out += fmt::format("{}  {}\n", pruned, id);
  for (const Kept& kept : report.kept) {
    out += fmt::format("kept  {}  {}\n", kept.attempt_id, one_line(kept.reason, 1000));
  }
  for (const Evicted& one : report.evicted) {
    out += fmt::format("evicted  base pack {} of {}  {}\n", one_line(one.head, 12),
                       one.repository.empty() ? "an unknown repository" : one_line(one.repository),
                       short_bytes(one.bytes));
  }
  out += fmt::format("{} {} attempts, {} of work and output", pruned, report.pruned.size(),
                     short_bytes(report.folder_bytes));
  if (!report.kept.empty()) out += fmt::format("; kept {} that are old enough", report.kept.size());
  const PrunePlan& counts = report.counts;
  if (counts.young > 0) out += fmt::format("; {} younger", counts.young);
  if (counts.newest > 0) out += fmt::format("; {} among the newest", counts.newest);
  if (counts.running > 0) out += fmt::format("; {} running", counts.running);
  return out + "\n";
}

std::string prune_json(const PruneReport& report) {
  constexpr std::size_t kMaxText = 4096;
  Json kept = Json::array();
  for (const Kept& one : report.kept) {
    kept.push_back({{"attempt_id", one.attempt_id}, {"reason", contract::json_text(one.reason, kMaxText)}});
  }
  Json evicted = Json::array();
  for (const Evicted& one : report.evicted) {
    evicted.push_back({{"head", one.head},
                       {"repository", contract::json_text(one.repository, kMaxText)},
                       {"bytes", contract::json_count(one.bytes)}});
  }
  const Json out = {{"dry_run", report.dry_run},
                    {"pruned", report.pruned},
                    {"kept", std::move(kept)},
                    {"young", contract::json_count(report.counts.young)},
                    {"newest", contract::json_count(report.counts.newest)},
                    {"running", contract::json_count(report.counts.running)},
                    {"evicted", std::move(evicted)},
                    {"folder_bytes", contract::json_count(report.folder_bytes)}};
  return contract::canonical(out) + "\n";
}

std::string discard_text(const std::string& id, bool removed, std::uint64_t bytes) {
  if (!removed) return fmt::format("nothing is kept of {}\n", id);
  return fmt::format("discarded what was kept of {}: {}\n", id, short_bytes(bytes));
}

std::string discard_json(const std::string& id, bool removed, std::uint64_t bytes) {
  const Json out = {{"attempt_id", id}, {"removed", removed}, {"bytes", contract::json_count(bytes)}};
  return contract::canonical(out) + "\n";
}

}  // namespace cofferdam::cli
