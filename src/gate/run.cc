#include <algorithm>

#include "attempt/box_host.h"
#include "gate/box_run.h"
#include "gate/gate.h"

namespace cofferdam::gate {
namespace {

// Which attacks run in which box, each once.
std::map<BoxKind, std::vector<Attack>> share_out(const std::vector<Row>& rows, const HostFacts& facts) {
  std::map<BoxKind, std::vector<Attack>> boxes;
  const auto add = [&boxes](const BoxKind& box, const Attack& attack) {
    std::vector<Attack>& in = boxes[box];
    const bool there =
        std::any_of(in.begin(), in.end(), [&](const Attack& one) { return one.id == attack.id; });
    if (!there) in.push_back(attack);
  };
  for (const Row& row : rows) {
    if (!unmet(row.attack.need, facts).empty()) continue;
    add(row.denied_in, row.attack);
    if (row.control.has_value()) add(*row.control, row.attack);
  }
  return boxes;
}

}  // namespace

Result<std::vector<Row>> choose_rows(const std::optional<std::string>& only) {
  std::vector<Row> rows = plan_rows(attacks());
  if (!only.has_value()) return rows;
  std::vector<Row> chosen;
  std::copy_if(rows.begin(), rows.end(), std::back_inserter(chosen),
               [&](const Row& row) { return row.id == *only || row.attack.id == *only; });
  if (chosen.empty()) {
    return make_error(Code::usage, "no attack has the id \"" + *only + "\"",
                      "`cofferdam gate --list` shows them");
  }
  return chosen;
}

Result<Report> run(const attempt::Host& host, const std::string& probe,
                   const std::optional<std::string>& only) {
  TRY(const std::vector<Row> rows, choose_rows(only));
  HostFacts facts = read_host_facts();
  TRY(const Canary canary, Canary::make(probe));
  const sandbox::BoxHost boxes = attempt::box_host(host, "gate");
  facts.groups = boxes.groups != nullptr;
  Outcomes outcomes;
  Report report;
  for (const auto& [kind, in] : share_out(rows, facts)) {
    auto found = run_in_box(boxes, canary, kind, in);
    ++report.boxes;
    if (!found && kind.without.empty()) return found.error().with("gate");
    if (found) {
      outcomes[kind] = *std::move(found);
      continue;
    }
    for (const Attack& attack : in) outcomes[kind][attack.id] = {Answer::error, found.error().what};
  }
  report.rows.reserve(rows.size());
  for (const Row& row : rows) report.rows.push_back(judge(row, outcomes, facts));
  if (only.has_value()) return report;
  for (const NotApplicable& entry : not_applicable()) report.rows.push_back(row_of(entry));
  return report;
}

}  // namespace cofferdam::gate
