#include "cli/verify_report.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/text.h"
#include "cli/table.h"
#include "contract/json.h"
#include "contract/result_shape.h"

namespace cofferdam::cli {
namespace {

using contract::Json;
using ledger::ChainReport;

constexpr std::size_t kMaxProblem = 1000;

const char* state_name(const ChainReport& report) {
  if (report.pruned) return "pruned";
  return report.finished ? "finished" : "running";
}

// The first member in which two records differ; both have the same keys, since both were decoded.
std::string first_difference(const contract::ResultRecord& printed, const contract::ResultRecord& stored) {
  auto left = contract::parse_json(contract::encode_result(printed), contract::kMaxResultBytes);
  auto right = contract::parse_json(contract::encode_result(stored), contract::kMaxResultBytes);
  if (!left || !right) return "a record cannot be read";
  for (const auto& [key, value] : left->items()) {
    if (!right->contains(key) || (*right)[key] != value) return key;
  }
  return {};
}

template <typename Record>
std::string compare_facts(const contract::ResultRecord& printed, const Record& stored) {
  if (printed.invocation_sha256 != stored.invocation_sha256)
    return fmt::format("the printed result is of invocation {}, the ledger has {}", printed.invocation_sha256,
                       stored.invocation_sha256);
  if (printed.outcome != stored.outcome)
    return fmt::format("the printed result says {}, the ledger says {}",
                       contract::outcome_name(printed.outcome), contract::outcome_name(stored.outcome));
  if (printed.chain_head != stored.chain_head)
    return fmt::format("the printed result has chain head {}, the ledger has {}", printed.chain_head,
                       stored.chain_head);
  return {};
}

std::string counted(std::uint64_t count, const char* what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

}  // namespace

Result<contract::ResultRecord> decode_printed(std::string_view text) {
  text = trim(text);
  auto whole = contract::decode_result(text);
  if (whole) return whole;
  const std::size_t newline = text.rfind('\n');
  if (newline != std::string_view::npos) {
    auto last = contract::decode_result(trim(text.substr(newline)));
    if (last) return last;
  }
  return make_error(Code::usage, "no result record: " + std::move(whole).error().what,
                    "give what `run --json`, `exec` or `show --json` printed");
}

std::string compare_record(const contract::ResultRecord& printed, const ledger::AttemptRecord& record) {
  if (!record.result) return "there is a printed result, but the ledger has none";
  auto stored = contract::decode_result(*record.result);
  if (!stored) return "the result cannot be read: " + stored.error().what;
  std::string problem = compare_facts(printed, *stored);
  if (!problem.empty()) return problem;
  const std::string key = first_difference(printed, *stored);
  return key.empty() ? "" : fmt::format("the printed result differs from the ledger's in \"{}\"", key);
}

std::string compare_tombstone(const contract::ResultRecord& printed, const ledger::Tombstone& tombstone) {
  return compare_facts(printed, tombstone);
}

bool all_intact(const ledger::FileReport& report) {
  return report.missing == 0 && std::all_of(report.attempts.begin(), report.attempts.end(),
                                            [](const ChainReport& one) { return one.intact; });
}

std::string verify_text(const ledger::FileReport& report) {
  std::string out;
  std::uint64_t running = 0;
  std::uint64_t pruned = 0;
  std::uint64_t events = 0;
  std::uint64_t broken = 0;
  for (const ChainReport& one : report.attempts) {
    running += one.finished ? 0 : 1;
    pruned += one.pruned ? 1 : 0;
    events += one.pruned ? 0 : one.events;
    if (one.intact) continue;
    ++broken;
    out +=
        fmt::format("not intact  {}  {}\n", one_line(one.attempt_id, 80), one_line(one.problem, kMaxProblem));
  }
  if (report.missing > 0) {
    out += fmt::format("not intact  {} missing: the ledger has admitted more than it holds\n",
                       counted(report.missing, "attempt"));
  }
  const bool intact = all_intact(report);
  out += intact ? "intact: " : fmt::format("NOT INTACT: {} of ", broken);
  out += counted(report.attempts.size(), "attempt");
  if (running > 0) out += fmt::format(", {} running (their ends are open)", running);
  if (pruned > 0) out += fmt::format(", {} pruned (tombstones only)", pruned);
  return out + fmt::format(", {}\n", counted(events, "event"));
}

std::string verify_json(const ledger::FileReport& report) {
  Json attempts = Json::array();
  for (const ChainReport& one : report.attempts) {
    attempts.push_back({{"attempt_id", contract::json_text(one.attempt_id, contract::kMaxNameBytes)},
                        {"state", state_name(one)},
                        {"intact", one.intact},
                        {"events", contract::json_count(one.events)},
                        {"event", one.event == 0 ? Json(nullptr) : contract::json_count(one.event)},
                        {"chain_head", contract::json_text(one.head, contract::kMaxNameBytes)},
                        {"problem", contract::json_text(one.problem, kMaxProblem)}});
  }
  const Json out = {{"intact", all_intact(report)},
                    {"missing", contract::json_count(report.missing)},
                    {"attempts", std::move(attempts)}};
  return contract::canonical(out) + "\n";
}

}  // namespace cofferdam::cli
